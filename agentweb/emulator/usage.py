"""Tokens of one sampling iteration, split as they are billed."""

from __future__ import annotations

from dataclasses import dataclass

from agentweb.emulator import json_codec


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    fresh: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0
    thinking: int = 0

    @property
    def prompt(self) -> int:
        return self.fresh + self.read + self.write_5m + self.write_1h

    def plus(self, more: Usage) -> Usage:
        return Usage(
            **{name: getattr(self, name) + getattr(more, name) for name in Usage.__slots__}
        )

    def start(self) -> json_codec.Object:
        """Return the usage of `message_start` and of a complete message."""
        return self._input() | {
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m,
                "ephemeral_1h_input_tokens": self.write_1h,
            },
            "output_tokens": self.output,
            "output_tokens_details": {"thinking_tokens": self.thinking},
        }

    def delta(self) -> json_codec.Object:
        """Return the usage of `message_delta`: cumulative."""
        return self._input() | {
            "output_tokens": self.output,
            "output_tokens_details": {"thinking_tokens": self.thinking},
        }

    def iteration(self, kind: str) -> json_codec.Object:
        return {
            "type": kind,
            "input_tokens": self.fresh,
            "output_tokens": self.output,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.write_5m + self.write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m,
                "ephemeral_1h_input_tokens": self.write_1h,
            },
        }

    def _input(self) -> json_codec.Object:
        return {
            "input_tokens": self.fresh,
            "cache_creation_input_tokens": self.write_5m + self.write_1h,
            "cache_read_input_tokens": self.read,
        }
