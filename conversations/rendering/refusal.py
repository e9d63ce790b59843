"""The base of errors by which an action is refused to a person."""

from __future__ import annotations


class RefusalError(Exception):
    """An action is refused: `code` is stable, `text` is the reason for the person."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text
