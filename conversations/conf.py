"""The settings of agentweb: an annotated field each, with its default and meaning.

A field `input_token_budget` is the Django setting `AGENTWEB_INPUT_TOKEN_BUDGET` and the environment
variable of the same name. Values are looked up on each access, so `override_settings` works.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver

from conversations.context.policy.policy import POLICY_FIELDS, PRESETS, Policy, build_policy

PREFIX = "AGENTWEB_"


class Conf:
    """The settings; `manage.py docs` makes the table of agentweb/README.md from their comments."""

    #: Model of new conversations; must be in the catalogue with a price.
    model: str = "claude-sonnet-5-5"
    #: Model that writes summaries; empty means the conversation's own.
    summary_model: str = ""
    #: Model that continues a turn, once, after the conversation's own model declined to answer;
    #: empty: the turn ends.
    fallback_model: str = ""
    #: Model that writes the title after the first answer; where it cannot be used, the
    #: conversation's own model writes it. off: the title is the first words.
    title_model: str = "claude-haiku-5-5"
    #: Default effort of a conversation, how much the model thinks and writes: low, medium, high,
    #: xhigh or max; a model that lacks the level uses its nearest. Empty: the model's own default.
    effort: str = ""
    #: Whether the prompt cache of a conversation is kept for an hour where its pauses make that
    #: cheaper; otherwise always for five minutes.
    long_cache: bool = True
    #: Most tokens one answer may have.
    max_output_tokens: int = 16_000
    #: Preset of the context policy: classic, tool-budget, rebuild, staged, gated-trim,
    #: structured, adaptive, thrifty, native or off.
    policy: str = "adaptive"
    #: Modules of the site's own code that are imported at start-up, to connect to the hooks of
    #: `conversations.signals`: a veto of a reduction, and notice of a recorded one.
    hooks: tuple[str, ...] = ()
    #: Model calls in one turn before it stops.
    max_rounds: int = 40
    #: Tool calls in one turn before it stops.
    max_tool_calls: int = 200
    #: Seconds one turn may take.
    max_turn_seconds: int = 900
    #: Micro-dollars one turn may cost; 0: no cap.
    max_turn_micros: int = 0
    #: Time zone of new budgets: where their days begin at midnight.
    budget_time_zone: str = "UTC"
    #: Tool calls of one answer that run at the same time.
    max_parallel_tools: int = 8
    #: Tools that are off for everybody, whatever rules for groups say.
    disabled_tools: tuple[str, ...] = ()
    #: Seconds one tool call may take; its tool may declare fewer.
    max_tool_seconds: int = 300
    #: Bytes of one tool result that are stored; its tool may declare fewer.
    max_tool_bytes: int = 2_000_000
    #: Log what blocks an event loop for more than this many milliseconds; 0 switches the check off.
    loop_block_ms: int = 1_000
    #: Where turns run: web, in the process that serves the pages, or worker, in Celery workers
    #: (`manage.py worker`; needs REDIS_URL and PostgreSQL).
    run_turns_in: str = "web"
    #: Turns that one process runs at the same time; more of them wait.
    process_turns: int = 150
    #: Seconds a stopping process waits for its turns to end, or to reach a point where another
    #: process can resume them.
    drain_seconds: int = 10
    #: The same for a worker (`manage.py worker`), long enough for an answer on its way. Set the
    #: process manager's kill timeout at least 30 s higher.
    worker_drain_seconds: int = 600
    #: Seconds without a renewed lease after which another process takes a turn over.
    lease_seconds: int = 30
    #: Whether every tool that reaches outside asks first, in every conversation of the site; groups
    #: and single conversations have a switch of their own.
    ask_before_egress: bool = False
    #: Hours an approval waits for a decision; then it counts as denied.
    approval_hours: int = 24
    #: Attempts at one model call before the turn fails.
    max_attempts: int = 4
    #: Longest wait, in seconds, between two attempts; a longer `retry-after` fails the turn.
    max_backoff_seconds: int = 60
    #: Seconds until the first event of an answer.
    first_event_seconds: int = 60
    #: Seconds of silence within an answer.
    read_timeout_seconds: int = 90
    #: Seconds one model call may take.
    attempt_seconds: int = 600
    #: Share of the model's window, in percent, that pinned originals may fill together.
    pinned_percent: int = 30
    #: Presets that people may choose for a conversation; empty means all of them.
    offered_policies: tuple[str, ...] = ()
    #: Longest instructions of a conversation, in characters.
    max_instructions_chars: int = 20_000
    #: Longest message a person may send, in characters.
    max_prompt_chars: int = 200_000
    #: Files one message may have.
    max_attachments: int = 20
    #: Files of one user that may wait to be sent.
    max_unsent_files: int = 50
    #: Bytes of the files of one user that wait to be sent.
    max_unsent_bytes: int = 100_000_000
    #: A pasted text with more characters than this becomes an attached file; 0: none does.
    paste_as_file_chars: int = 8_000
    #: Days that a deleted conversation or file can be brought back; then it is erased.
    trash_days: int = 30
    #: Hours after its start at which a temporary chat is erased, unless its owner does so earlier;
    #: 0: none can be started.
    temporary_hours: int = 24
    #: Who may open the links that people make to their chats: people, who are logged in; public,
    #: anybody, where the person chose so for the link. off: no link is made, and none works.
    sharing: str = "people"
    #: Whether staff must say why before they read another person's conversation.
    reading_reasons: bool = True
    #: Bytes a file of conversations to import may have.
    max_import_bytes: int = 50_000_000
    #: Bytes that its conversations may have, unpacked, with attached files; one conversation may
    #: have a twentieth of that without its files, and a fifth with them.
    max_import_unpacked: int = 200_000_000
    #: Turns of one user that may run at the same time.
    max_live_turns: int = 4
    #: Messages that may wait in one conversation while an answer is on its way.
    max_queued_prompts: int = 5
    #: Bytes one user's workspace may hold.
    workspace_bytes: int = 50_000_000
    #: Files one user's workspace may hold.
    workspace_files: int = 1_000
    #: Bytes one file of a workspace may have.
    workspace_file_bytes: int = 5_000_000
    #: host:port pairs that `fetch_url` may reach although they are loopback or private.
    fetch_private_hosts: tuple[str, ...] = ()
    #: Bytes of pages that `fetch_url` caches for each user, so that a page read in parts is loaded
    #: once; 0: none.
    fetch_cache_bytes: int = 5_000_000
    #: Whether people may let the model search the web (the API's own tool) in a conversation.
    web_search: bool = True
    #: Searches one answer may make; the cost of all of them is held from the budget beforehand.
    web_search_uses: int = 5
    #: Domains that searches are limited to; empty: all of the web.
    web_search_allowed: tuple[str, ...] = ()
    #: Domains that searches leave out; not used where they are limited to some.
    web_search_blocked: tuple[str, ...] = ()
    #: Two-letter country whose pages searches prefer; empty: none.
    web_search_country: str = ""
    #: Encryption keys for the stored secrets of mail accounts, MCP servers and webhooks: the first
    #: encrypts, all of them decrypt; empty: `SECRET_KEY`.
    secrets_key: tuple[str, ...] = ()
    #: host:port pairs that MCP servers may be reached at although they are loopback or private.
    mcp_private_hosts: tuple[str, ...] = ()
    #: Whether an MCP server may be a command run on this machine, as the site's own user.
    mcp_commands: bool = True
    #: Seconds between two polls of the tools of a connected MCP server.
    mcp_check_seconds: int = 300
    #: Addresses or networks of your own proxies, like 10.0.0.0/8: from them the visitor's address
    #: (X-Forwarded-For) and the scheme (X-Forwarded-Proto) are taken; empty: no address is, and the
    #: scheme only from private networks.
    trusted_proxies: tuple[str, ...] = ()
    #: Tabs that one person may have open at one web process; further ones wait.
    max_sockets_per_user: int = 20
    #: Failed log-ins of one name from one address within five minutes until further ones must wait;
    #: 0: none do.
    log_in_attempts: int = 5
    #: Failed log-ins from one address within ten minutes, whatever the names; 0: none do.
    log_in_attempts_of_address: int = 30
    #: Failed log-ins of one name within any hour, from all addresses together; a browser in which
    #: the person logged in before is not held up by them. 0: no limit.
    log_in_attempts_of_account: int = 100
    #: Failed log-ins of all names within any hour, from all addresses together; 0: no limit.
    log_in_attempts_of_site: int = 3_000
    #: Minutes for which a superuser may look at the site as another person, with a reason, on
    #: record and without changing anything; 0: nobody may.
    impersonation_minutes: int = 0
    #: Hours without a request after which a session ends; 0: it does not.
    session_idle_hours: int = 336
    #: Hours after the log-in at which a session ends, used or not; 0: it does not.
    session_hours: int = 1_440
    #: Hours that a link to a new password or for a new e-mail address works.
    mailed_link_hours: int = 4
    #: host:port pairs of mail servers that may be loopback or private.
    mail_private_hosts: tuple[str, ...] = ()
    #: A file of certificate authorities that mail servers may have besides the machine's own.
    mail_ca_file: str = ""
    #: OAuth providers of refresh tokens for mail: name, token URL, client id and, where there is
    #: one, client secret, with spaces between.
    mail_providers: tuple[str, ...] = ()
    #: Bytes of one mail that are read.
    mail_bytes: int = 25_000_000
    #: host:port pairs that budget alerts may be posted to although they are loopback or private,
    #: and without TLS.
    alert_private_hosts: tuple[str, ...] = ()
    #: File in which the ends of all chains are anchored every hour, best on another disk or on
    #: storage that is written once; empty: anchors.jsonl in the data folder; off: none.
    anchor_file: str = ""
    #: Milliseconds the built-in emulator waits between two pieces of an answer.
    emulator_delay_ms: int = 12

    def __getattribute__(self, name: str) -> Any:
        default = object.__getattribute__(self, name)
        if name.startswith("_"):
            return default
        return getattr(settings, PREFIX + name.upper(), default)


conf = Conf()
#: The settings of the policy's numbers, by number; most are not set.
_POLICY_SETTINGS = tuple((name, PREFIX + name.upper()) for name in POLICY_FIELDS)
_UNSET = object()


def list_defaults() -> dict[str, Any]:
    """Return every setting's name and default, the context policy's numbers included."""
    own = {name: getattr(Conf, name) for name in get_type_hints(Conf)}
    return own | {name: getattr(PRESETS[Conf.policy], name) for name in POLICY_FIELDS}


def build_site_policy() -> Policy:
    """Return the site's context policy: the preset with the numbers that were set explicitly."""
    return build_policy(conf.policy, read_site_overrides())


@cache
def read_site_overrides() -> Mapping[str, Any]:
    """Return the context policy's numbers that are set for the site."""
    found = ((name, getattr(settings, full, _UNSET)) for name, full in _POLICY_SETTINGS)
    return {name: value for name, value in found if value is not _UNSET}


@receiver(setting_changed)
def _forget_overrides(**_: Any) -> None:
    read_site_overrides.cache_clear()
