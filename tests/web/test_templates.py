"""Templates: every page and every event renders, and hostile text is escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from django import forms
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.utils import translation

from conversations.agent import events
from conversations.live.render import _demand_templates, render_text, template_of
from conversations.models import User
from conversations.reductions.original_state import OriginalState
from conversations.reductions.shapes import PinState
from conversations.reductions.trials import Trial
from conversations.toolbox.tool_list import ToolRow
from conversations.transcript.prompt_editor import EditablePrompt, PromptPart
from conversations.transcript.questions import LeavingWord
from conversations.web.policy_lab import Row
from tests.web import samples
from tests.web.library_contexts import SHELVES
from tests.web.tags import acting, attributes, elements

TEMPLATES = Path(settings.BASE_DIR) / "templates"
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\"><script>alert(1)</script><svg onload='alert(1)'>",
    "' hx-get=/admin/ hx-trigger=load onfocus=alert(1) autofocus x='",
    "</textarea></template></pre></title><iframe srcdoc=x></iframe><style>*{}</style>",
    "{% url 'home' %}{{ conversation }}{# x #}",
    "<div hx-swap-oob='innerHTML:#history' id=live ws-send>x</div>",
    "../../a/b?c=d#e%00\x07\u202e",
)
#: Events with their own frame: those that show a whole page are sent as a snapshot.
EVENTS = [kind for kind in events.EVENTS.values() if events.Shows.PAGE not in kind.shows]
OWN_HTMX = {
    *("hx-headers", "hx-ext", "hx-disable", "hx-post", "hx-get", "hx-target", "hx-swap"),
    *("hx-params", "hx-trigger", "hx-disabled-elt", "hx-swap-oob", "ws-connect", "hx-include"),
    *("hx-sync", "hx-replace-url", "hx-vals"),
}


def request(*, is_staff: bool = True, words: str = "marek") -> HttpRequest:
    found = RequestFactory().get("/")
    found.user = User(username=words, is_staff=is_staff)
    return found


class Login(forms.Form):
    username = forms.CharField()
    password = forms.CharField(widget=forms.PasswordInput, help_text="Help")


PAGES: dict[str, Any] = {
    "conversations/chat.html": samples.chat,
    "conversations/reduction.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "reduction": samples.reduction(words),
    },
    "offline.html": lambda words="x": {"preferences": None},
    "conversations/shared.html": samples.shared,
    "conversations/shared_gone.html": lambda words="x": {},
    "conversations/output.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "id": words,
        "output": words,
        "standing": OriginalState(PinState(words), is_reduced=True, text=words),
    },
    "conversations/refused.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "error": words,
        "back": "/c/new/",
    },
    "conversations/policy_lab.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "trial": Trial(1, 1, (words, words), words, problem=words),
        "names": ["", words],
        "rows": [Row(words, (words, words), is_part=True, best=(1,))],
        "own": words,
        "problem": words,
    },
    "conversations/edit.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "draft": EditablePrompt(1, words, (PromptPart(0, words),)),
        "client_id": samples.ID,
    },
    "conversations/external_link.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "url": words,
        "host": words,
        "words": [LeavingWord(words, words)],
    },
    "conversations/tools.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "rows": [ToolRow(words, words, words, True, True, True, on, words) for on in (True, False)],
    },
    "conversations/conversation_settings.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "form": {"model": Login({"username": words})["username"]},
    },
    "conversations/_partials/pin_button.html": lambda words="x": {
        "conversation": samples.conversation(words),
        "keep": PinState(words, is_pinned=True),
    },
    "conversations/_partials/earlier.html": samples.chat,
    "conversations/_partials/send_error.html": lambda words="x": {"error": words},
    "registration/login.html": lambda words="x": {
        "form": Login({"username": words}),
        "next": words,
        "providers": [{"id": "work", "name": words}],
    },
    "registration/reset.html": lambda words="x": {
        "form": Login({"username": words}),
        "sends_mail": True,
    },
    "registration/second_step.html": lambda words="x": {
        "has_codes": True,
        "options": words,
        "wrong": Login({"username": words}),
    },
    "registration/refused.html": lambda words="x": {"words": words},
    "registration/reset_sent.html": lambda words="x": {"hours": 4},
    "registration/reset_confirm.html": lambda words="x": {
        "form": Login({"username": words}),
        "validlink": True,
    },
    "invitation.html": lambda words="x": {
        "form": Login({"username": words}),
        "email": f"{words}@example.org",
    },
    "setup.html": lambda words="x": {"form": Login({"username": words})},
} | SHELVES


@pytest.mark.parametrize("page", PAGES)
def test_every_page_renders_and_obeys_the_policy(page: str) -> None:
    html = render_to_string(page, PAGES[page](), request())
    assert html.strip()
    assert not acting(html)
    assert {name for name in attributes(html) if name.startswith(("hx-", "ws-"))} <= OWN_HTMX


@pytest.mark.parametrize("words", HOSTILE)
@pytest.mark.parametrize("page", PAGES)
def test_hostile_words_are_text_on_every_page(page: str, words: str) -> None:
    html = render_to_string(page, PAGES[page](words), request(words=words))
    plain = render_to_string(page, PAGES[page]("words"), request(words="words"))
    assert not acting(html)
    assert _commands(html) <= _commands(plain)


def framed(event: events.Event, words: str = "words") -> str:
    """Return the fragment of an event, by the template of its name if it has one."""
    if isinstance(event, events.TextGrew):
        return render_text(event)
    return render_to_string(template_of(event), samples.event_context(event, words))


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_has_its_frame(kind: type[events.Event]) -> None:
    html = framed(samples.event(kind))
    assert "hx-swap-oob" in html
    assert not acting(html)


def test_an_event_without_a_template_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unseen(events.QueueChanged):
        shows = events.QueueChanged.shows

    try:
        with pytest.raises(ImproperlyConfigured, match="Unseen has no template"):
            _demand_templates()
    finally:
        del events.EVENTS["Unseen"]


@pytest.mark.parametrize("words", HOSTILE)
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_hostile_words_are_text_in_every_event(kind: type[events.Event], words: str) -> None:
    event, tame = samples.event(kind, words), samples.event(kind, "words")
    html, plain = framed(event, words), framed(tame)
    assert not acting(html)
    assert _commands(html) <= _commands(plain)


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_text_in_a_snapshot(words: str) -> None:
    context = samples.chat(words) | {"turns": (samples.turn(words, state="running"),)}
    html = render_to_string("conversations/events/snapshot.html", context)
    assert not acting(html)
    assert html.count('id="live"') == 1


def test_growing_text_goes_to_its_round_and_is_cleaned_again() -> None:
    event = events.TextGrew(3, 2, "<thinking>", "<p>a<script>x</script></p>", "<b>b</b>")
    html = render_text(event)
    assert 'hx-swap-oob="beforeend:#turn-3-r2-done"><p>a</p>' in html
    assert 'hx-swap-oob="innerHTML:#turn-3-r2-tail">b</div>' in html
    assert 'hx-swap-oob="beforeend:#turn-3-r2-thinking">&lt;thinking&gt;' in html


def test_a_turn_is_the_same_on_the_page_and_by_the_socket() -> None:
    context = samples.event_context(events.TurnClosed(1))
    page = render_to_string("conversations/_partials/turn.html", context)
    frame = render_to_string("conversations/events/turn_closed.html", context)
    frame = frame.replace('hx-swap-oob="outerHTML"', "", 1)
    assert "".join(page.split()) in "".join(frame.split())


@pytest.mark.parametrize("state", ["queued", "running", "tool_wait", "backoff", "cancelling"])
def test_a_live_turn_can_be_stopped_and_says_what_it_does(state: str) -> None:
    context = samples.event_context(events.TurnChanged(1))
    context |= {"turn": samples.turn(state=state), "live_turn": 1}
    html = render_to_string("conversations/events/turn_changed.html", context)
    assert 'data-live="yes"' in html
    assert f'hx-post="/c/{samples.ID}/stop/"' in html
    # Both buttons name the turn that they stop.
    stops = html.count(f'hx-post="/c/{samples.ID}/stop/"')
    assert stops == html.count('hx-params="turn"') == html.count("""hx-vals='{"turn": 1}'""")
    assert 'class="working"' in html
    assert ("data-countdown" in html) is (state == "backoff")


@pytest.mark.parametrize("state", ["failed", "cancelled", "interrupted", "done"])
def test_an_answer_can_be_had_again_however_it_ended(state: str) -> None:
    context = {"conversation": samples.conversation(), "turn": samples.turn(state=state)}
    html = render_to_string("conversations/_partials/turn.html", context)
    assert f'hx-post="/c/{samples.ID}/retry/1/"' in html
    assert ("Try again" in html) is (state != "done")
    assert ("Regenerate" in html) is (state == "done")
    assert (f'action="/c/{samples.ID}/continue/1/"' in html) is (state == "cancelled")


def test_the_copied_source_is_inert() -> None:
    turn = samples.turn('</template><img src=x onerror="alert(1)">')
    html = render_to_string("conversations/_partials/foot.html", {"turn": turn})
    assert "&lt;/template&gt;&lt;img" in html


def test_markers_say_what_became_of_a_reduction() -> None:
    def shown(outcome: str) -> str:
        context = {"marker": samples.marker(outcome=outcome)}
        return render_to_string("conversations/_partials/marker.html", context)

    assert "96k → 31k</span> tokens of messages" in " ".join(shown("applied").split())
    assert "What changed" in shown("applied")
    assert "rejected" in shown("rejected")
    assert "is-unused" in shown("vetoed")


def test_ids_of_a_page_are_unique() -> None:
    html = render_to_string("conversations/chat.html", samples.chat(), request())
    ids = [attrs["id"] for _, attrs in elements(html) if "id" in attrs]
    # The two conversations of the sample share a shape but not an id.
    assert len(ids) == len(set(ids))


def test_only_staff_see_the_review() -> None:
    context = samples.chat() | {"can_review": False}
    html = render_to_string("conversations/chat.html", context, request(is_staff=False))
    assert "/admin/" not in html
    assert "/admin/" in render_to_string("conversations/chat.html", samples.chat(), request())


def test_the_new_chat_page_posts_without_a_script() -> None:
    context = samples.chat() | {"conversation": None, "draft": "hello", "error": "Too long"}
    for name in ("transcript", "live_turns", "meter"):
        del context[name]
    html = render_to_string("conversations/chat.html", context, request())
    form = next(attrs for tag, attrs in elements(html) if attrs.get("id") == "composer")
    assert form["action"] == "/c/start/"
    assert "hx-post" not in form
    assert ">hello</textarea>" in html
    assert "Too long" in html
    assert "ws-connect" not in html


@pytest.mark.parametrize("code", [400, 403, 404, 500])
def test_error_pages_need_no_context_and_tell_nothing(code: int) -> None:
    html = render_to_string(f"{code}.html", {"request_path": "<secret>", "exception": "<secret>"})
    assert "secret" not in html
    assert not acting(html)


def test_the_emulator_is_named_on_every_page() -> None:
    with_key = {"is_emulated": False}
    for page, context in PAGES.items():
        if "_partials" in page:
            continue
        html = render_to_string(page, context() | {"is_emulated": True}, request())
        assert "Built-in emulator" in html
        html = Template(f'{{% extends "{page}" %}}').render(Context(context() | with_key))
        assert "Built-in emulator" not in html


def test_no_template_marks_text_as_safe_or_acts_inline() -> None:
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape off|mark_safe|javascript:", text), path
        # A standalone page contains its style sheet; pages of the site do not.
        assert ("<style" in text) is (path.name == "head.html"), path
        assert not re.search(r"\son[a-z]+=|\sstyle=", text), path
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), path
        assert text == normalize("NFC", text), path


def test_the_pages_speak_other_languages_from_the_right() -> None:
    with translation.override("ar"):
        html = render_to_string("conversations/chat.html", samples.chat(), request())
    assert '<html lang="ar" dir="rtl"' in html


def test_the_log_in_page_needs_nobody() -> None:
    visitor = RequestFactory().get("/")
    visitor.user = AnonymousUser()
    html = render_to_string("registration/login.html", {"form": Login(), "next": ""}, visitor)
    assert 'name="username"' in html


@pytest.mark.parametrize(
    ("tag", "value", "shown"),
    [
        ("dollars", 0, "$0.00"),
        ("dollars", 7, "<$0.0001"),
        ("dollars", 4_250, "$0.0043"),
        ("dollars", 13_250, "$0.013"),
        ("dollars", 1_234_567, "$1.23"),
        ("dollars", 1_234_567_890, "$1,234.57"),
        ("dollars", -2_500_000, "-$2.50"),
        ("tokens", 999, "999"),
        ("tokens", 1_234, "1.2k"),
        ("tokens", 96_301, "96k"),
        ("tokens", 999_700, "1M"),
        ("tokens", 1_250_000, "1.25M"),
        ("duration", 420, "420 ms"),
        ("duration", 4_210, "4.2 s"),
        ("duration", 125_000, "2 min 5 s"),
        ("commas", 96_301, "96,301"),
        ("dollars", None, ""),
        ("tokens", None, ""),
        ("duration", None, ""),
    ],
)
def test_numbers_are_shown_as_people_read_them(tag: str, value: int | None, shown: str) -> None:
    template = Template(
        f"{{% load agentweb %}}{{% autoescape on %}}{{{{ v|{tag} }}}}{{% endautoescape %}}"
    )
    assert template.render(Context({"v": value})).replace("&lt;", "<") == shown


def _commands(html: str) -> set[tuple[str, str]]:
    """Return what acts on a page by htmx: the element and its attribute."""
    return {
        (tag, name)
        for tag, attrs in elements(html)
        for name in attrs
        if name.removeprefix("data-").startswith(("hx-", "ws-")) or name == "autofocus"
    }
