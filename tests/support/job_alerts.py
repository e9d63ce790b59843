"""The alert mails of the job search: one for each list page, of realistic length.

Two facts are not on the pages: how a company is rated, and whether an opening is still open. Both
are generated like the openings, from the same seed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from random import Random

from agentweb.demo.openings import Opening, list_openings
from agentweb.demo.prose import Prose
from agentweb.demo.workspace import PROMPT

SENDER = "alerts@jobs.example"
#: When the first alert was sent.
FIRST = datetime(2026, 11, 20, 7, 0, tzinfo=UTC)
#: What the prompt of the search asks for beside its criteria.
_CHECKS = """- rating 10 %

Before scoring
- Ask the company register how each company is rated, 1 to 5; 5 counts in full.
- Ask the job board whether each opening is still open, and leave out what is closed.
"""


def rate_company(company: str) -> int:
    """Return the rating of a company by its employees, 1 to 5."""
    return Random(f"rating {company}").randint(1, 5)


def is_open(opening: Opening) -> bool:
    """Return whether an opening still takes applications; about one in five does not."""
    return Random(f"status {opening.reference}").random() < 0.8


def render_alert(page: int, base: str, recipient: str) -> EmailMessage:
    """Return the mail that announces the openings of a list page, with their addresses."""
    mail = EmailMessage()
    mail["From"] = f"Job alerts <{SENDER}>"
    mail["To"] = recipient
    mail["Subject"] = f"{len(list_openings(page))} openings: senior .NET contracts, page {page}"
    mail["Date"] = format_datetime(FIRST + timedelta(days=page))
    mail["Message-ID"] = f"<alert-{page}@jobs.example>"
    rows = "".join(_row(opening, base) for opening in list_openings(page))
    mail.set_content(
        f"<html><body><h1>New for you</h1>{rows}<p>You get this mail because you asked for it.</p>"
        '<img src="http://tracker.invalid/pixel.gif" width="1" height="1"></body></html>',
        subtype="html",
    )
    return mail


def _row(opening: Opening, base: str) -> str:
    prose = Prose(opening)
    words = "".join(f"<p>{escape(text)}</p>" for text in (*prose.company()[:1], *prose.work()[:1]))
    place = f"{escape(opening.company)}, {opening.city}"
    return (
        f'<h2><a href="{base}{opening.path}">{escape(opening.title)}</a></h2><p>{place}</p>{words}'
    )


def make_alerts_prompt(sender: str) -> str:
    """Return the prompt for a search in a sender's alert mails, checked with two MCP servers."""
    return PROMPT.format(
        start=f"Start from the mailbox:\nAlert mails: from {sender}, one for each page",
        collect="Read the alert mails and collect the link of every job in them.",
        growth=15,
        more=_CHECKS,
    )
