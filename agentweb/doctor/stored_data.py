"""Checks of stored data: files, turns, ledger, anchors, settings of mail and MCP servers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import storages

from agentweb.doctor.report_lines import Line, failed, ok, warn
from conversations.audit.anchor_file import find_anchor_path
from conversations.budgets.reconciliation import has_drift
from conversations.conf import conf
from conversations.library.erase_proof import count_uncleaned
from conversations.toolbox.mail_accounts import list_mail_providers
from conversations.toolbox.sealed_secrets import list_closed_secrets
from conversations.turns.worker_queue import count_stuck_turns

#: Ages after which a turn counts as waiting too long or stuck, and an anchor as old.
WAITED, SILENT, ANCHORED = timedelta(minutes=5), timedelta(minutes=2), timedelta(hours=3)
#: Age after which erased text counts as not cleaned from the database's files.
CLEANED = timedelta(hours=3)
#: Closed secrets that are named.
MOST_NAMES = 10
_PROBE = "doctor/probe"


def check_storage() -> Iterator[Line]:
    """Write, read and delete a file where uploaded files are stored."""
    store, words = storages["workspace"], b"agentweb"
    try:
        name = store.save(_PROBE, ContentFile(words))
        try:
            with store.open(name) as file:
                is_same = file.read() == words
        finally:
            store.delete(name)
    except Exception as error:
        # Any exception of a third-party storage.
        text = f"files cannot be written ({type(error).__name__})"
        hint = "Check AGENTWEB_WORKSPACE_STORAGE, or the rights of the data folder."
        yield failed("storage", text, hint)
        return
    if is_same:
        yield ok("storage", "a file was written, read and deleted")
    else:
        yield failed("storage", "a file came back as another", "Check AGENTWEB_WORKSPACE_STORAGE.")


def check_turns() -> Iterator[Line]:
    if stuck := count_stuck_turns(waited=WAITED, silent=SILENT):
        text = f"{stuck} wait for a worker for minutes, or have lost theirs"
        yield failed("turns", text, "Is a process running that runs turns? See its log.")
    else:
        yield ok("turns", "none is stuck")


def check_ledger() -> Iterator[Line]:
    if has_drift():
        hint = "manage.py ledger names them, manage.py ledger recompute mends them."
        yield failed("ledger", "budget windows differ from their reservations", hint)
    else:
        yield ok("ledger", "budgets agree with it")


def check_anchors() -> Iterator[Line]:
    path = find_anchor_path()
    if path is None:
        hint = "Set AGENTWEB_ANCHOR_FILE to a file on another disk."
        yield warn("anchors", "off: a rewritten log could not be told from the true one", hint)
    elif not path.is_file():
        hint = "It is written each hour by a server; manage.py anchor writes it now."
        yield warn("anchors", f"{path} is not there yet", hint)
    else:
        age = datetime.now(UTC) - datetime.fromtimestamp(path.stat().st_mtime, UTC)
        text = f"the last is {round(age / timedelta(minutes=1))} minutes old"
        if age > ANCHORED:
            yield warn("anchors", text, "See the log: manage.py anchor says what is in the way.")
        else:
            yield ok("anchors", text)


def check_erasures() -> Iterator[Line]:
    """Tell of erased text that nobody cleaned from the database's files for hours."""
    late = count_uncleaned(before=datetime.now(UTC) - CLEANED)
    if late:
        text = f"the text of {late} has been in the database's files for hours"
        hint = "Run manage.py erase --prove where AGENTWEB_MIGRATE_DATABASE_URL is set."
        yield warn("erasures", text, hint)
    else:
        yield ok("erasures", "none waits to be cleaned from the database's files")


def check_secrets() -> Iterator[Line]:
    """Name the stored secrets that no key opens."""
    closed = list_closed_secrets()
    if not closed:
        yield ok("secrets", "all that are stored can be opened")
        return
    shown = ", ".join(closed[:MOST_NAMES])
    more = f" and {len(closed) - MOST_NAMES} more" if len(closed) > MOST_NAMES else ""
    hint = (
        "Put the key they were stored under behind the first in AGENTWEB_SECRETS_KEY, or into"
        " SECRET_KEY_FALLBACKS where that is not set, and run manage.py secrets rotate; or enter"
        " them anew."
    )
    yield failed("secrets", f"cannot be opened: {shown}{more}", hint)


def check_mail() -> Iterator[Line]:
    names, name = len(list_mail_providers()), "AGENTWEB_MAIL_PROVIDERS"
    if names != len(conf.mail_providers):
        text = f"{len(conf.mail_providers) - names} are not whole"
        yield failed(name, text, "Each is: name, token URL, client id and, if any, secret.")
    elif names:
        yield ok(name, f"{names} can be used")
    authorities = conf.mail_ca_file
    if authorities and not Path(authorities).is_file():
        yield failed("AGENTWEB_MAIL_CA_FILE", "the file is not there", "Correct its path.")


def check_private_addresses() -> Iterator[Line]:
    for reached in ("fetch", "mcp", "mail", "alert"):
        setting = f"{reached}_private_hosts"
        name = f"AGENTWEB_{setting.upper()}"
        for pair in getattr(conf, setting):
            host, _, port = pair.rpartition(":")
            if not host or not port.isdigit():
                yield failed(name, f"{pair} is not host:port", "Use pairs like wiki.lan:443.")


CHECKS = (
    check_storage,
    check_turns,
    check_ledger,
    check_anchors,
    check_erasures,
    check_secrets,
    check_mail,
    check_private_addresses,
)
