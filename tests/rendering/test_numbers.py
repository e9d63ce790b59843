"""Numbers are written in the language of who reads them."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from conversations.rendering import numbers

ROWS = {
    "en": ("1,234,567", "$1,234.50", "2.7k", "4.2 s"),
    "de": ("1.234.567", "$1.234,50", "2,7k", "4,2 s"),
    "fr": ("1\xa0234\xa0567", "$1\xa0234,50", "2,7k", "4,2 s"),
    "es": ("1\xa0234\xa0567", "$1\xa0234,50", "2,7k", "4,2 s"),
}


@pytest.mark.parametrize("language", ROWS)
def test_numbers_have_the_signs_of_the_language(language: str) -> None:
    with override(language):
        found = (
            numbers.write_number(1_234_567),
            numbers.dollars(1_234_500_000),
            numbers.tokens(2_700),
            numbers.duration(4_200),
        )
        small, cent = numbers.dollars(30), numbers.cents(9_000)
    assert found == ROWS[language]
    point = "." if language == "en" else ","
    assert (small, cent) == (f"<$0{point}0001", f"<$0{point}01")
