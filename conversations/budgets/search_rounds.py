"""Upper bound on the tokens that an answer with web searches reads.

After each search the API reads the whole request again, and once more after an attempt beyond the
limit. In each such round the new results are new input, and earlier parts are read from the prompt
cache; they are billed, and counted as tokens, all the same. The first `LEAST_CACHED` tokens are
taken as new input in every round, since a prompt of that size may not be cached. Recorded answers
agree: the final usage is the sum over all rounds.
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
