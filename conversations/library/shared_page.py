"""What a link shows of a chat: the turns of one path up to a turn, as they are in the log now.

A value here has only what readers of a link may see, so that no template can show more: no
thinking, no reductions, no cost, and no tool calls unless the owner chose so. What the owner has
excluded from requests since is left out here, too. A page costs the same number of queries however
long the conversation is.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from uuid import UUID

from django.http import Http404

from conversations.context.steps.recall_list import message_id
from conversations.files.attachment_display import Attached, list_referenced_digests
from conversations.log.findings import read_decodable
from conversations.log.tree import build_path_condition, filter_path_turns, find_path_end
from conversations.models import LIVE, Attachment, Conversation, Message, SharedLink
from conversations.reductions.removed_originals import list_excluded
from conversations.transcript import transcript
from conversations.transcript.shapes import Fallback, Round, Source, ToolCard, Turn

#: Turns of a page.
PAGE = transcript.PAGE
#: The tool that reads originals again.
_RECALL = "recall"
#: Greater than every sequence number.
_END = 2**62


@dataclass(frozen=True, slots=True)
class SharedRound:
    """One reply: its text as safe HTML, its sources, its tools where these are shared."""

    html: str
    sources: tuple[Source, ...] = ()
    tools: tuple[ToolCard, ...] = ()
    fallback: Fallback | None = None
    is_left_out: bool = False
    #: Whether the model of the fallback answered.
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class SharedTurn:
    number: int
    prompt_html: str
    files: tuple[Attached, ...]
    rounds: tuple[SharedRound, ...]
    is_continuation: bool
    #: The ending unless the turn completed normally.
    chip: str
    is_left_out: bool = False


@dataclass(frozen=True, slots=True)
class SharedPage:
    """A page of turns; `later` is the last turn shown when others follow."""

    title: str
    turns: tuple[SharedTurn, ...]
    later: int | None = None


def read_shared_page(
    link: SharedLink, after: int, address_file: Callable[[str], str]
) -> SharedPage:
    """Return the page of turns after one, 0 for the first; `address_file` addresses a file's id."""
    conversation = link.conversation
    path = filter_path_turns(conversation, end=link.leaf, start=after + 1)
    rows = path.exclude(state__in=LIVE).order_by("number").select_related("draft")
    found = list(rows[: PAGE + 1])
    out = _list_left_out(link)
    turns = transcript.build_turns(conversation, found[:PAGE], None)
    shown = tuple(_share_turn(turn, link, out, address_file) for turn in turns)
    later = shown[-1].number if len(found) > PAGE else None
    return SharedPage(conversation.title, shown, later)


def load_shared_file(link: SharedLink, public_id: UUID) -> Attachment:
    """Return a file of a prompt that the link shows; raises Http404."""
    rows = Attachment.objects.filter(conversation=link.conversation_id, public_id=public_id)
    row = rows.select_related("data").first()
    if row is None or not _is_in_prompts(row, link):
        raise Http404("no such file in what is shared")
    return row


def _is_in_prompts(row: Attachment, link: SharedLink) -> bool:
    prompts = Message.objects.filter(
        build_path_condition("turn", link.conversation, end=link.leaf),
        conversation=link.conversation_id,
        kind=Message.Kind.PROMPT,
        content__contains=row.data_id,
    )
    out, contents = _list_left_out(link), prompts.values_list("seq", "content")
    return any(
        row.data_id in list_referenced_digests(content) and message_id(seq) not in out
        for seq, content in read_decodable(lambda: list(contents))
    )


def _list_left_out(link: SharedLink) -> frozenset[str]:
    """Return the originals that the owner has excluded: on the path that the link follows, or on
    the one that they look at, which may have taken another way since.
    """
    found, end = list_excluded(link.conversation), find_path_end(link.conversation, link.leaf)
    if end == link.conversation.leaf:
        return found
    other: Conversation = copy(link.conversation)
    other.leaf, other.tip = end, _END
    return found | list_excluded(other)


def _share_turn(
    turn: Turn, link: SharedLink, out: frozenset[str], address_file: Callable[[str], str]
) -> SharedTurn:
    is_left_out = turn.prompt_seq is not None and message_id(turn.prompt_seq) in out
    rounds = (_share_round(one, out, with_tools=link.with_tools) for one in turn.rounds)
    files = () if is_left_out else turn.files
    return SharedTurn(
        number=turn.number,
        prompt_html="" if is_left_out else turn.prompt_html,
        files=tuple(_share_file(file, address_file) for file in files),
        rounds=tuple(one for one in rounds if one != SharedRound("")),
        is_continuation=turn.is_continuation,
        chip=turn.chip,
        is_left_out=is_left_out,
    )


def _share_round(row: Round, out: frozenset[str], *, with_tools: bool) -> SharedRound:
    if row.seq is not None and message_id(row.seq) in out:
        return SharedRound("", is_left_out=True)
    sources = row.sources
    if out or not with_tools:
        # What a source is quoted for came out of a tool, or of what is left out.
        sources = tuple(replace(source, quote="") for source in sources)
    is_answered = row.fallback is not None and row.seq is not None
    shown = SharedRound(row.html, sources, (), row.fallback, is_answered=is_answered)
    if not with_tools:
        return shown
    has_results = row.results_seq is None or message_id(row.results_seq) not in out
    tools = row.tools if has_results else ()
    kept = (card for card in tools if card.id not in out and not card.is_left_out)
    # A recall may repeat what is left out.
    kept = (card for card in kept if not out or card.name != _RECALL)
    return replace(shown, tools=tuple(kept))


def _share_file(file: Attached, address_file: Callable[[str], str]) -> Attached:
    """Address a file below the link; one that has its data in itself stays as it is."""
    if not file.id:
        return file
    url = address_file(file.id)
    return replace(file, url=url, text_url="", tokens=0, characters=None)
