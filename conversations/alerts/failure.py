"""Why something could not be delivered, in words without secrets or addresses."""

from __future__ import annotations


class DeliveryFailed(Exception):
    """An attempt failed; it is repeated unless `is_final`."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final
