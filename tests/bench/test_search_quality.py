"""Recall of the search beside BM25: the sets that are read, and figures known by hand."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agentweb.bench.search_quality import (
    Query,
    SearchedSet,
    build_set,
    make_sets,
    measure_sets,
    write_line,
)
from tests.lab.samples import answer, reading, record, user

BIRDS = {"a": "the heron nests in June", "b": "a swallow flies", "c": "herons and swallows"}


def run(*words: str) -> dict[str, Any]:
    out = StringIO()
    call_command("bench", "search", *words, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A test collection in BEIR's format; the last query has no relevant text."""
    rows = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in BIRDS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows))
    queries = {"1": "heron nests", "2": "swallow", "3": "owls"}
    rows = [json.dumps({"_id": key, "text": text}) for key, text in queries.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(rows))
    judged = ("query-id\tcorpus-id\tscore", "1\ta\t2", "2\tb\t1", "2\tc\t1", "3\tc\t0")
    (tmp_path / "qrels.tsv").write_text("\n".join(judged))
    return tmp_path


def test_a_published_collection_is_read_and_recall_is_the_share_of_the_relevant(
    collection: Path,
) -> None:
    (row,) = run(str(collection))["sets"]
    assert row["queries"] == 2
    assert row["recall"]["recall"] == {"3": 1.0, "5": 1.0}
    # BM25 counts whole words, so it does not find "swallows".
    assert row["recall"]["FTS5"] == {"3": 0.75, "5": 0.75}


def test_what_cannot_be_read_is_said(collection: Path) -> None:
    (collection / "qrels.tsv").unlink()
    with pytest.raises(CommandError, match="a set cannot be read"):
        run(str(collection))


def test_a_recording_gives_a_query_for_each_far_fact_over_what_came_before_it(
    tmp_path: Path,
) -> None:
    messages = [*reading(40), user("And?"), answer("Page 7 of part 0 it is, 4711.")]
    fact = {"first_seen_message": 0, "used_at_message": len(messages) - 1, "sole_source": True}
    messages[0] = user("Read 4711, all of its pages.")
    near = {"fact": "part0/page3.txt", "first_seen_message": 7, "used_at_message": 11}
    one = record(messages, facts=[fact | {"fact": "4711"}, near])
    built = build_set(one, 60)
    assert [query.relevant for query in built.queries] == [{"msg_1"}]
    assert built.queries[0].texts == len(built.texts) - 1
    assert "4711" not in built.queries[0].words


def test_several_sets_have_a_row_for_all() -> None:
    texts = [(key, text, 1.0, ()) for key, text in BIRDS.items()]
    hit, miss = (Query(words, frozenset({"a"}), 3) for words in ("heron nests", " "))
    rows = list(
        measure_sets(
            [SearchedSet("x", texts, [hit]), SearchedSet("y", texts, [miss]), SearchedSet("z", [])]
        )
    )
    assert [(row["set"], row["queries"]) for row in rows] == [("x", 1), ("y", 1), ("all", 2)]
    assert rows[2]["recall"]["recall"] == rows[2]["recall"]["FTS5"] == {3: 0.5, 5: 0.5}
    assert write_line(rows[2]).startswith(
        "all: 2 queries; recall at 3 / 5: recall 50.0% / 50.0%, FTS5 50.0% / 50.0%"
    )


def test_the_synthetic_tasks_are_found_better_than_by_bm25() -> None:
    *_, whole = measure_sets(make_sets())
    assert whole["queries"] == 240
    assert whole["recall"]["recall"][3] >= 0.95 > whole["recall"]["FTS5"][5]
