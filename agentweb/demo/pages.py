"""The job site's HTML, with as much markup around the text as real job sites have."""

from __future__ import annotations

from html import escape

from agentweb.demo.openings import PAGES, Opening, list_openings
from agentweb.demo.prose import Prose

_STYLE = "".join(
    f".c-{name}{{display:flex;margin:{at}px;padding:{at * 2}px;border-radius:{at}px;"
    f"color:#1{at}2b4{at}}}"
    for at, name in enumerate(
        ("nav", "hero", "card", "tag", "grid", "list", "side", "foot", "cta", "meta")
    )
)
_SCRIPT = (
    "window.dataLayer=window.dataLayer||[];function "
    "track(e){dataLayer.push({event:e,at:Date.now()})}"
) * 6
_ICON = (
    '<svg class="c-tag" width="16" height="16" viewBox="0 0 16 16" '
    'aria-hidden="true"><path d="M2 8.5l3.5 3.5L14 3.5"'
    ' fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round"/></svg>'
)
_SECTIONS = ("Jobs", "Companies", "Salaries", "Advice", "For employers", "About", "Help", "Sign in")
_COOKIES = (
    "We use cookies that are needed to keep you signed in and cookies that tell us "
    "which pages are read. "
    "You can refuse the second kind without any disadvantage."
)


def render_list_page(page: int) -> str:
    rows = "".join(_row(opening) for opening in list_openings(page))
    more = f'<a class="c-cta" href="/jobs?page={page + 1}">Next page</a>' if page < PAGES else ""
    body = (
        f"<h1>Senior .NET contracts, page {page} of {PAGES}</h1>"
        f"<p>{len(list_openings(page))} openings on this page. Rates and working models are "
        f"on the page of each job.</p>"
        f'<ol class="c-list">{rows}</ol>{more}'
    )
    return _document(f"Senior .NET contracts, page {page}", body)


def render_job_page(opening: Opening) -> str:
    prose = Prose(opening)
    parts = [
        _header(opening),
        _section("About the company", _paragraphs(prose.company())),
        _section("The work", _paragraphs(prose.work())),
        _section("What you will do", _items(prose.duties())),
        _section("The facts", _facts(opening)),
        _section("Growth", _growth(opening)),
        _section("What you get", _items(prose.benefits())),
        _section(
            "Interview process",
            f"<p>The process is {opening.interview}. Answers come in three days.</p>",
        ),
        _section(
            "Questions other candidates asked",
            "".join(f"<h3>{escape(q)}</h3><p>{escape(a)}</p>" for q, a in prose.questions()),
        ),
        _section("Small print", _paragraphs(prose.legal())),
        _similar(opening),
    ]
    return _document(opening.title, "".join(parts))


def _header(opening: Opening) -> str:
    place = f"{escape(opening.company)}, {opening.city}. Contract, senior level."
    title = escape(opening.title)
    return f'<header class="c-hero"><h1>{title}</h1><p class="c-meta">{place}</p></header>'


def _facts(opening: Opening) -> str:
    facts = (
        ("Position", opening.title),
        ("Reference", opening.reference),
        ("Day rate", f"{opening.rate} EUR per day, excluding VAT"),
        ("Working model", opening.remote),
        ("Stack", ", ".join(opening.stack)),
        ("Team size", f"{opening.team_size} people"),
        ("Contract length", f"{opening.months} months"),
        ("Start date", opening.start),
        ("On-call duty", opening.on_call),
        ("Training", f"{opening.training_days} paid days a year"),
        ("Equipment budget", f"{opening.equipment} EUR"),
    )
    rows = (
        (
            f'<li class="c-card" '
            f'data-k="{escape(name.lower())}"><strong>{escape(name)}:</strong> '
            f"{escape(value)}</li>"
        )
        for name, value in facts
    )
    return f'<ul class="c-grid">{"".join(rows)}</ul>'


def _growth(opening: Opening) -> str:
    reasons = (
        "there is no plan beyond this contract",
        "an extension is likely, a new role is not",
        "you may lead a small part of the work after half a year",
        "you will lead the team's design work and may stay for years",
        "the role is meant to become the technical lead of the whole product",
    )
    return (
        f"<p><strong>Growth:</strong> {opening.growth} of 5, because "
        f"{reasons[opening.growth - 1]}.</p>"
    )


def _row(opening: Opening) -> str:
    return (
        f'<li class="c-card"><div class="c-tag"><span '
        f'class="c-meta">{opening.reference}</span></div>'
        f'<a href="{opening.path}" onclick="track(\'open\')">{escape(opening.title)}</a>'
        f"<p>{escape(opening.company)} looks for an experienced developer for its "
        f"{opening.domain.lower()} team "
        f"near {opening.city}. Open the page for the rate, the working model and the "
        f"stack.</p></li>"
    )


def _similar(opening: Opening) -> str:
    others = [other for other in list_openings(opening.page) if other.number != opening.number][:4]
    links = "".join(
        f'<li><a href="{other.path}">{escape(other.title)}</a></li>' for other in others
    )
    return f'<aside class="c-side"><h2>Similar openings</h2><ul>{links}</ul></aside>'


def _section(title: str, inner: str) -> str:
    return (
        f'<section class="c-card"><div '
        f'class="c-grid"><h2>{escape(title)}</h2>{inner}</div></section>'
    )


def _paragraphs(lines: list[str]) -> str:
    return "".join(
        f'<div class="c-grid"><p class="c-meta">{_ICON}{escape(line)}</p></div>' for line in lines
    )


def _items(lines: list[str]) -> str:
    rows = "".join(f'<li class="c-tag">{_ICON}<span>{escape(line)}</span></li>' for line in lines)
    return f'<ul class="c-list">{rows}</ul>'


def _document(title: str, body: str) -> str:
    nav = "".join(
        f'<a class="c-nav" href="/{name.lower().replace(" ", "-")}">{name}</a>'
        for name in _SECTIONS
    )
    return (
        f'<!doctype html><html lang="en"><head><meta '
        f'charset="utf-8"><title>{escape(title)} | Contract Board</title>'
        f"<style>{_STYLE}</style><script>{_SCRIPT}</script></head><body>"
        f'<nav class="c-nav" aria-label="Main">{nav}</nav><div class="c-cta" '
        f'role="dialog"><p>{_COOKIES}</p>'
        f"<button>Accept</button><button>Refuse</button></div><main>{body}</main>"
        f'<footer class="c-foot">{nav}'
        "<p>Contract Board is a demonstration. No company on it exists.</p></footer></body></html>"
    )
