"""Terms: what a text is found by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conversations.log.search_terms import split_terms

PLAIN = st.text(st.characters(max_codepoint=0x7F), max_size=200)


@given(PLAIN)
def test_plain_text_is_cut_as_the_same_words_are_beside_others(text: str) -> None:
    beside = [*split_terms(text + " 栗")]
    assert [*split_terms(text)] == beside[:-1]
