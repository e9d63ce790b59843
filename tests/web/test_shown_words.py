"""What is recorded or computed in English is shown in the language of the reader."""

from __future__ import annotations

import pytest
from django.utils import translation

from conversations.rendering.numbers import budget_source
from tests.budgets.test_effective import rule
from tests.web.test_catalogues import LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_a_budget_comes_from_is_shown_in_the_readers_language(language: str) -> None:
    kinds = [
        rule(1, scope, kind=kind, group="Research")
        for scope in ("site", "group", "user")
        for kind in ("pool", "per_member", "own")
    ]
    sources = {source for one in kinds for source in (one.source, one.own_source)}
    assert len(sources) == 8
    for source in sources:
        with translation.override("en"):
            assert budget_source(source) == source
        with translation.override(language):
            assert budget_source(source) != source
            assert ("Research" in budget_source(source)) == ("Research" in source)
