"""Report: a row told in plain text, and findings marked at their words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from whilesim.keeping.report import mark


@settings(deadline=None)
@given(
    st.text("abc ", max_size=12), st.lists(st.tuples(st.text("abc ", max_size=3), st.sampled_from("xyz")), max_size=4)
)
def test_pieces_are_the_text_and_every_quote_is_marked(text, found):
    pieces = mark(text, found)
    assert "".join(piece.text for piece in pieces) == text
    for quote, reason in found:
        wanted = quote if quote and quote in text else text
        assert wanted in "".join(piece.text for piece in pieces if reason in piece.reasons)
