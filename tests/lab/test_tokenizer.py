"""How the simulated API counts: by words, blocks by their texts, or by an installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversations.context.tokens.estimate import FRAME, estimate_block
from conversations.lab import simulated_tokenizer
from conversations.lab.simulated_tokenizer import build_tokenizer, count_words, find_reconstructed
from tests.lab.samples import call, result, text
from tests.lab.test_cache import IMAGE

#: Texts with the counts of ctok 1.3.0 for the API's version 4.8, without the frame of 6.
COUNTED = {
    "The quick brown fox jumps over the lazy dog.": 18,
    "def read_file(path: str, limit: int = 2000) -> str:\n    return open(path).read()[:limit]": 36,
    "https://example.org/jobs/2026/senior-python-developer?id=48213": 25,
    "Das Angebot gilt bis zum 31. Dezember 2026 und kostet 1.249,00 EUR.": 39,
    "東京の天気は晴れです。明日は雨が降るでしょう。": 24,
}


@pytest.mark.parametrize("words", COUNTED)
def test_words_are_counted_nearly_as_the_reconstructed_tokenizer_does(words: str) -> None:
    assert abs(count_words(words) - COUNTED[words]) <= COUNTED[words] * 2 // 5


def test_an_empty_text_has_no_tokens_and_any_other_has_some() -> None:
    assert [count_words(words) for words in ("", " ", "a", "Привет")] == [0, 1, 1, 3]


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (text("seven77"), 7),
        (result("toolu_1", "four"), 7 + 4),
        (result("toolu_1", [text("four"), IMAGE]), 7 + FRAME + 4 + estimate_block(IMAGE)),
        (call("toolu_1", "a"), 7 + 9 + len('{"path":"a"}')),
        ({"type": "thinking", "thinking": "four", "signature": "s" * 10}, 4 + 3),
        (IMAGE, estimate_block(IMAGE) - FRAME),
    ],
)
def test_blocks_count_their_texts(block: dict[str, Any], tokens: int) -> None:
    tokenizer = build_tokenizer(len)
    assert tokenizer.block(block) == FRAME + tokens
    assert build_tokenizer(len, 200).text("four") == 8
    assert tokenizer.tool({"a": "b"}) == len('{"a":"b"}')


def test_the_reconstructed_tokenizer_is_used_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_tokenizer, "RECONSTRUCTED", "counter_for_this_test")
    assert find_reconstructed() is None
    monkeypatch.syspath_prepend(tmp_path)
    code = "def token_count(text, version):\n    return len(text) + 6 if version == '4.8' else 0\n"
    (tmp_path / "counter_for_this_test.py").write_text(code)
    count = find_reconstructed()
    assert count is not None
    assert (count("four"), count("")) == (4, 0)
