"""Files that make parsers and searches work as long as they can, and those of a corpus.

Run as a process in the environment of a server under test: `python -m agentweb.bench.hostile_files
[FOLDER]` puts them into every person's workspace, approves the tool of a server that spins, and
prints the names of the corpus's files.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from pathlib import Path

#: Seconds that a call of the spinning server may take, and for its tool to be listed.
DEADLINE, PATIENCE = 10, 60
#: Bytes of the large files, and of the files of a corpus that are taken.
SIZE, MOST_OF_CORPUS, MOST_FILES = 5_000_000, 1_000_000, 12


def make_files() -> dict[str, bytes]:
    """Return the files by their path."""
    return {
        "long.txt": b"a" * 1_900_000,
        "less-than.html": b"<" * SIZE,
        "nested.html": b"<div>" * (SIZE // 5),
        "deep.json": b"[" * SIZE,
        "wide.csv": b"," * SIZE,
        "loop.pdf": _make_pdf(b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"),
        "bomb.pdf": _make_pdf(
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
            _make_stream(zlib.compress(b"q " * 60_000_000, 9)),
        ),
        "junk.pdf": b"%PDF-1.7\n" + b"1 0 obj << /A [ " * 200_000,
    }


def _make_stream(packed: bytes) -> bytes:
    head = b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(packed)
    return head + packed + b"\nendstream"


def _make_pdf(*objects: bytes) -> bytes:
    data, places = b"%PDF-1.7\n", []
    for number, text in enumerate((b"<< /Type /Catalog /Pages 2 0 R >>", *objects), start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    table = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(places) + 1, rows)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\n" % (len(places) + 1)
    return data + table + trailer + b"startxref\n%d\n%%%%EOF\n" % len(data)


def read_corpus(folder: Path) -> dict[str, bytes]:
    """Return the smaller files of a folder, as many as are taken, by a name for the workspace."""
    found: dict[str, bytes] = {}
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        if path.stat().st_size <= MOST_OF_CORPUS and len(found) < MOST_FILES:
            found[f"corpus/{len(found)}{path.suffix.lower()}"] = path.read_bytes()
    return found


def approve_spinning_server() -> None:
    """Add the server, and approve its tool once the running site has listed it."""
    from agentweb.bench import spinning_server
    from agentweb.bench.own_database import make_person
    from conversations.models import McpServer, McpTool
    from conversations.toolbox.mcp import servers

    actor = make_person("approver")
    server = McpServer(
        name="spinning", transport="stdio", command=sys.executable, deadline=DEADLINE,
        arguments=["-I", str(Path(spinning_server.__file__).resolve())], is_enabled=True,
    )  # fmt: skip
    servers.save_server(server=server, actor=actor, changed=["name"])
    until = time.monotonic() + PATIENCE
    while (tool := McpTool.objects.filter(server=server).first()) is None:
        if time.monotonic() > until:
            server.refresh_from_db()
            raise TimeoutError(f"the spinning server is {server.state}: {server.last_error}")
        time.sleep(0.2)
    servers.approve_tool(
        tool_id=tool.pk, digest=tool.listed_digest, effect=McpTool.Effect.READ, actor=actor
    )


def main() -> None:
    from django.contrib.auth import get_user_model

    from conversations.files.workspace import UserWorkspace

    corpus = read_corpus(Path(sys.argv[1])) if len(sys.argv) > 1 else {}
    files = make_files() | corpus
    for user in get_user_model().objects.all():
        workspace = UserWorkspace(user.pk)
        for path, data in files.items():
            workspace.write(path, data)
    approve_spinning_server()
    sys.stdout.write(json.dumps(sorted(corpus)) + "\n")


if __name__ == "__main__":
    import django

    django.setup()
    main()
