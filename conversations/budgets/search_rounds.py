"""What an answer with web searches reads: each search is followed by another round of the request.

One more round follows where the model tries to search once more than it may. A round reads the
request with all results so far. The results are new input of the next round, at the price of new
input; what was in the round before is read from the prompt cache, but all of it is billed, and
counts as tokens. A short prompt is not cached, so it is new input in each round. Recorded answers
with a cache agree: the figures of the end are sums over the rounds, results are written to the
cache, and earlier parts are read from it.
"""

from __future__ import annotations

#: Tokens that the results of one search may add to the request; recorded: 4,500 to 11,900.
SEARCH_TOKENS = 15_000
#: Searches that are left of an offer before a call is refused.
LEAST_SEARCHES = 1
#: Tokens from which every model caches a prompt.
LEAST_CACHED = 4_096


def count_new(request: int, searches: int) -> int:
    """Return the most new input of all rounds: the request, the results, and what is not cached."""
    fresh = _count_rounds(searches) * min(request, LEAST_CACHED)
    return request + searches * SEARCH_TOKENS + fresh


def count_reread(request: int, searches: int) -> int:
    """Return the most input that rounds after the first read from the cache."""
    rounds, cached = _count_rounds(searches), max(0, request - LEAST_CACHED)
    # Each search's results are read by the rounds after the one that wrote them.
    return rounds * cached + SEARCH_TOKENS * searches * rounds // 2


def _count_rounds(searches: int) -> int:
    """Return how many rounds may follow the first."""
    return searches + 1 if searches else 0
