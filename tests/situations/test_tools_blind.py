"""Tool sets in every dialect are read as was written down before they were first read."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from whilesim.situations.tools import parse_tools

CASES = yaml.safe_load((Path(__file__).parent / "tools_blind.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_names_effects_required_and_id_like_arguments_are_as_a_reader_says(case):
    found = {t.name: t for t in parse_tools(case["tools"])}
    assert list(found) == list(case["expect"])
    for name, (effect, required, ids) in case["expect"].items():
        tool = found[name]
        assert tool.effect == effect, (name, tool.effect_rule)
        assert sorted(tool.parameters["required"]) == sorted(required.split()), name
        assert sorted(tool.id_arguments) == sorted(ids.split()), name
