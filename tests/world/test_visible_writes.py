"""What was written can be read back: a table written by hand from the tools' descriptions, and tau2's own gold writes."""

from __future__ import annotations

import pytest
from world_sets import gold_writes, written_rows


@pytest.mark.corpus
def test_nearly_every_write_is_seen_by_the_read_that_must_show_it(shared):
    rows = [row for row in written_rows() if row[2] != "-"]
    missed = [row for row in rows if row[4]]
    assert len(missed) <= 0.05 * len(rows), missed


@pytest.mark.corpus
@pytest.mark.parametrize("domain", ["retail", "airline", "telecom"])
def test_a_gold_write_is_accepted_and_seen_by_a_later_read(shared, domain):
    found = list(gold_writes(domain, every=4))
    assert found
    assert [row for row in found if row[2]] == []
