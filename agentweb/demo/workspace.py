"""The files a demonstration workspace starts with."""

from __future__ import annotations

PROMPT_NAME = "search-prompt.txt"
RESULT_NAME = "todays-jobs.md"

PROMPT = """JOB SEARCH PROMPT

Goal
Find contract work for a senior .NET developer and rank what you find. {start}

How to work
1. {collect}
2. Open every job on its own page. The short line on the list is not enough to judge a job.
3. Note for each job: title, address of its page, day rate, working model, stack, growth.
4. Score each job from 0 to 100 with the rubric below and sort by score, best first.
5. Write the table to todays-jobs.md with the columns Score, Title, URL, Rate, Remote.
6. Answer with the best jobs, in short. Do not repeat the job pages.

Criteria
- Level: senior, contract, in the European Union
- Wanted stack: C#, .NET 8, ASP.NET Core, Azure, SQL Server
- Remote: fully remote is best, hybrid counts half, on site counts nothing
- Pay: 500 to 700 a day; 500 and less counts nothing, 700 and more counts in full
- Growth: as the page rates it, 5 of 5 counts in full

Rubric
- stack 30 %
- remote 20 %
- pay 25 %
- growth {growth} %
{more}"""


def make_search_prompt(list_url: str) -> str:
    """Return the text of `search-prompt.txt` with the address of the list page filled in."""
    return PROMPT.format(
        start=f"Start from this list page:\nList page: {list_url}",
        collect="Fetch the list page and collect the link of every job on it.",
        growth=25,
        more="",
    )


def list_workspace_files(list_url: str) -> dict[str, str]:
    """Return name and text of every file for a new workspace."""
    return {
        PROMPT_NAME: make_search_prompt(list_url),
        "README.txt": (
            "This workspace belongs to the demonstration. Say: Execute the job search "
            "prompt from search-prompt.txt\n"
        ),
    }


PROMPTS = (
    "Execute the job search prompt from search-prompt.txt",
    "Only jobs with at least 600 a day, and look at page 2 as well",
    "Drop anything that is not fully remote and check page 3 too",
)
QUESTIONS = ("What is the rubric?", "What was the URL and score of the best job?")
