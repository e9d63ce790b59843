"""A safe path in the workspace for an attachment, whatever its sender named it."""

from __future__ import annotations

import re

from tools.framework.errors import PathRefusedError
from tools.mail.message import Attachment
from tools.workspace.paths import split_path

UNFIT = re.compile(r"[^\w .()+,@=\[\]-]+")
LONGEST = 120


def attachment_path(uid: int, attachment: Attachment) -> str:
    """Return mail/<uid>/<number>-<name>, without the name if it is not allowed for a file."""
    name = re.split(r"[/\\]", attachment.name)[-1]
    name = UNFIT.sub("_", name).strip(" .")
    stem, dot, ending = name.rpartition(".")
    if len(name) > LONGEST:
        name = f"{stem[: LONGEST - 20]}{dot}{ending[:19]}"
    path = f"mail/{uid}/{attachment.number}-{name}"
    try:
        split_path(path)
    except PathRefusedError:
        return f"mail/{uid}/attachment-{attachment.number}"
    return path
