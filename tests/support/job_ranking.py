"""The expected result of a job search, computed from the facts and not from the pages."""

from __future__ import annotations

from agentweb.demo.openings import Opening, list_openings
from tests.support.job_alerts import is_open, rate_company

WANTED = ("C#", ".NET 8", "ASP.NET Core", "Azure", "SQL Server")


def score(job: Opening, *, is_rated: bool) -> int:
    share = sum(name in job.stack for name in WANTED) * 20
    place = 100 if job.remote == "fully remote" else 50 if "hybrid" in job.remote else 0
    pay = max(0, min(100, (job.rate - 500) // 2))
    growth = job.growth * 20 * (15 if is_rated else 25)
    rated = rate_company(job.company) * 20 * 10 if is_rated else 0
    return int((share * 30 + place * 20 + pay * 25 + growth + rated + 50) // 100)


def expected(
    pages: int, base: str, *, least: int = 0, remote: bool = False, is_rated: bool = False
) -> list[tuple[int, str]]:
    """Return score and address of matching jobs, best first; with `is_rated` only open ones."""
    jobs = [job for page in range(1, pages + 1) for job in list_openings(page)]
    kept = [
        (score(job, is_rated=is_rated), job.rate, f"{base}{job.path}")
        for job in jobs
        if job.rate >= least
        and (job.remote == "fully remote" or not remote)
        and (is_open(job) or not is_rated)
    ]
    kept.sort(key=lambda row: (-row[0], -row[1], row[2]))
    return [(points, url) for points, _, url in kept]
