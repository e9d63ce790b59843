"""Generated parts of a README: the text between `<!-- name -->` and `<!-- /name -->`."""

from __future__ import annotations

from pathlib import Path


def read_marked(file: Path, name: str) -> str:
    """Return the text between the marks of a name; "" when the file has none."""
    begin, end = _make_marks(name)
    text = file.read_text(encoding="utf-8")
    return text.partition(begin)[2].partition(end)[0].strip("\n")


def replace_marked(file: Path, name: str, text: str) -> bool:
    """Put a text between the marks of a name; return False when the file has no such marks."""
    begin, end = _make_marks(name)
    head, opened, rest = file.read_text(encoding="utf-8").partition(begin)
    _, closed, tail = rest.partition(end)
    if not (opened and closed):
        return False
    file.write_text(f"{head}{begin}\n{text}\n{end}{tail}", encoding="utf-8")
    return True


def _make_marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- /{name} -->"
