"""The head of one HTTP/1.1 request, parsed or refused."""

from __future__ import annotations

from dataclasses import dataclass


class BadHead(ValueError):
    """Not a request this server reads."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


@dataclass(frozen=True, slots=True)
class Head:
    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    keep_alive: bool
    #: None means chunked.
    length: int | None
    expects_continue: bool


def parse_head(raw: bytes) -> Head:
    lines = raw.lstrip(b"\r\n").split(b"\r\n")
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
        raise BadHead(400)
    headers = tuple(_parse_line(line) for line in lines[1:])
    named = dict(headers)
    connection = named.get(b"connection", b"").lower()
    return Head(
        method=parts[0].decode("latin-1"),
        target=parts[1].decode("latin-1"),
        headers=headers,
        keep_alive=b"close" not in connection
        and (parts[2] == b"HTTP/1.1" or b"keep-alive" in connection),
        length=_length(named),
        expects_continue=named.get(b"expect", b"").lower() == b"100-continue",
    )


def _parse_line(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not name or name != name.strip():
        raise BadHead(400)
    return name.lower(), value.strip()


def _length(named: dict[bytes, bytes]) -> int | None:
    if b"transfer-encoding" in named:
        if named[b"transfer-encoding"].lower() != b"chunked" or b"content-length" in named:
            raise BadHead(400)
        return None
    text = named.get(b"content-length", b"0")
    if not text.isdigit():
        raise BadHead(400)
    return int(text)
