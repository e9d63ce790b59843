"""How well the search of `recall` ranks, beside published BM25 on the same texts and queries.

Sets are recordings (each fact is a query, made of the words around it in the answer that used it
without the fact itself; relevant are the originals that had it, at least `_FAR` messages before),
folders in BEIR's format (`corpus.jsonl`, `queries.jsonl`, `qrels.tsv` or `qrels/test.tsv`), in
which published test collections are distributed, and the synthetic tasks of the policy lab.
Recall at k is the share of the relevant texts among the first k, of at most k. BM25 is that of
SQLite's FTS5, and that of the package rank-bm25 where it is installed.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conversations.lab.fact_search import FactSearch
from conversations.lab.made_tasks import make_tasks
from conversations.lab.records import Record, read_records
from tools.text.ranking import rank_texts

#: Ranks at which recall is measured; fewest messages between a fact and its use.
RANKS = (3, 5)
_FAR = 60
_WORD = re.compile(r"\w+")
Text = tuple[str, str, float, tuple[Hashable, ...]]
#: Returns the keys of the best texts for a query, best first.
Search = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Query:
    """A query over the first `texts` texts of its set, and the keys of those that are relevant."""

    words: str
    relevant: frozenset[str]
    texts: int


@dataclass(slots=True)
class SearchedSet:
    """Texts with their weights in our ranking, and queries over them."""

    name: str
    texts: list[Text]
    queries: list[Query] = field(default_factory=list)


def read_sets(paths: Iterable[Path]) -> Iterator[SearchedSet]:
    """Read each folder or file; raises OSError, ValueError, RecordError, or KeyError."""
    for path in paths:
        if (path / "corpus.jsonl").is_file():
            yield _read_beir(path)
        else:
            files = sorted(path.rglob("*.jsonl*")) if path.is_dir() else [path]
            for record in (one for file in files for one in read_records(file)):
                if not isinstance(record, Record):
                    raise record
                yield build_set(record, _FAR)


def make_sets() -> Iterator[SearchedSet]:
    """Yield the synthetic tasks as sets."""
    return (build_set(task, 0) for task in make_tasks())


def build_set(record: Record, far: int) -> SearchedSet:
    """Build the set of a recording, of facts whose first and only source is that far back."""
    search = FactSearch(record)
    ats = [at for at, _ in search.originals]
    found = SearchedSet(record.id, [(o.id, o.searched, o.weight, ()) for _, o in search.originals])
    for fact in record.facts:
        if fact.is_sole and fact.used_at - fact.first_seen >= far:
            texts = sum(at < fact.used_at for at in ats)
            finding = search.find(fact, fact.used_at)
            keys = {key for key, *_ in found.texts[:texts]}
            found.queries.append(Query(finding.query, frozenset(finding.holding) & keys, texts))
    return found


def _read_beir(folder: Path) -> SearchedSet:
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    texts: list[Text] = [
        (str(r["_id"]), f"{r.get('title', '')}\n{r['text']}", 1.0, ()) for r in rows
    ]
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    words = {str(row["_id"]): str(row["text"]) for row in map(json.loads, lines)}
    judged = folder / "qrels.tsv"
    relevant: dict[str, set[str]] = {}
    with (judged if judged.is_file() else folder / "qrels" / "test.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    queries = [Query(words[key], frozenset(keys), len(texts)) for key, keys in relevant.items()]
    return SearchedSet(folder.name, texts, queries)


def measure_sets(sets: Iterable[SearchedSet]) -> Iterator[dict[str, Any]]:
    """Yield a row for each set with queries, and one for all of them if there are several."""
    rows = []
    for one in sets:
        if one.queries:
            rows.append(_build_row(one.name, len(one.queries), _measure_recall(one)))
            yield rows[-1]
    if len(rows) > 1:
        count = sum(row["queries"] for row in rows)
        sums: dict[str, Counter[int]] = {}
        for row in rows:
            for name, recall in row["recall"].items():
                weighted = {rank: share * row["queries"] for rank, share in recall.items()}
                sums.setdefault(name, Counter()).update(weighted)
        yield _build_row("all", count, sums)


def write_line(row: dict[str, Any]) -> str:
    shares = (
        f"{name} {' / '.join(f'{share:.1%}' for share in recall.values())}"
        for name, recall in row["recall"].items()
    )
    return f"{row['set']}: {row['queries']} queries; recall at 3 / 5: {', '.join(shares)}"


def _build_row(name: str, queries: int, sums: dict[str, Counter[int]]) -> dict[str, Any]:
    recall = {
        search: {rank: found[rank] / queries for rank in RANKS} for search, found in sums.items()
    }
    return {"set": name, "queries": queries, "recall": recall}


def _measure_recall(searched: SearchedSet) -> dict[str, Counter[int]]:
    """Return the sum over the queries of the recall at each rank, for each way to search."""
    sums: dict[str, Counter[int]] = {}
    indexes: dict[int, list[tuple[str, Search]]] = {}
    for query in searched.queries:
        if query.texts not in indexes:
            indexes = {query.texts: list(list_searches(searched.texts[: query.texts]))}
        for name, search in indexes[query.texts]:
            keys = search(query.words)
            for rank in RANKS:
                hits = len(query.relevant & set(keys[:rank])) / min(rank, len(query.relevant))
                sums.setdefault(name, Counter()).update({rank: hits})
    return sums


def list_searches(texts: list[Text]) -> Iterator[tuple[str, Search]]:
    """Yield our search and the others over the same texts."""
    most = max(RANKS)
    yield "recall", lambda words: [row[0] for row in rank_texts(texts, words, most)]
    yield "FTS5", _index_with_fts5(texts, most)
    if importlib.util.find_spec("rank_bm25") is not None:
        yield "rank-bm25", _index_with_rank_bm25(texts, most)


def _index_with_fts5(texts: list[Text], most: int) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(key UNINDEXED, body)")
    database.executemany(
        "INSERT INTO texts VALUES (?, ?)", ((key, body) for key, body, *_ in texts)
    )

    def search(words: str) -> list[str]:
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(words)))
        if not wanted:
            return []
        sql = "SELECT key FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?"
        return [str(key) for (key,) in database.execute(sql, (wanted, most))]

    return search


def _index_with_rank_bm25(texts: list[Text], most: int) -> Search:
    package: Any = importlib.import_module("rank_bm25")
    index = package.BM25Okapi([_WORD.findall(body.lower()) for _, body, *_ in texts])

    def search(words: str) -> list[str]:
        scores = index.get_scores(_WORD.findall(words.lower()))
        best = sorted(range(len(texts)), key=lambda at: -scores[at])
        return [texts[at][0] for at in best[:most]]

    return search
