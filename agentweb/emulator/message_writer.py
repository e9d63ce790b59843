"""Builds a message from an answer and its figures: as it begins, and complete."""

from __future__ import annotations

from dataclasses import dataclass

from agentweb.emulator import json_codec, message_metadata
from agentweb.emulator.billed_answer import BilledAnswer
from agentweb.emulator.call import Call
from agentweb.emulator.ids import make_id
from agentweb.emulator.prepare_prompt import Prepared
from agentweb.emulator.usage import Usage


@dataclass(frozen=True, slots=True)
class MessageWriter:
    call: Call
    prepared: Prepared
    outcome: BilledAnswer
    nonce: bytes
    #: `diagnostics`, if they were requested.
    diagnostics: json_codec.Object
    now: float

    @property
    def model(self) -> str:
        return self.outcome.served_by or self.call.model.id

    def begin(self, usage: Usage) -> json_codec.Object:
        """Return the message of `message_start`."""
        message: json_codec.Object = {
            "id": make_id("msg", self.nonce),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": usage.start() | message_metadata.where(self.call),
        }
        return (
            message | self.diagnostics | message_metadata.transformations(self.call, self.prepared)
        )

    def build_message(self) -> json_codec.Object:
        answer, final = self.outcome.answer, self.outcome.final
        message = self.begin(final) | {
            "content": [piece.block for piece in answer.pieces],
            "stop_reason": answer.stop_reason,
            "stop_sequence": answer.stop_sequence,
            "stop_details": answer.stop_details,
            "usage": final.start()
            | message_metadata.where(self.call)
            | message_metadata.server_uses(answer)
            | self.outcome.iterations(),
        }
        return message | self.container() | self.extra()

    def extra(self) -> json_codec.Object:
        if self.prepared.edits is None:
            return {}
        return {"context_management": {"applied_edits": self.prepared.edits}}

    def container(self) -> json_codec.Object:
        return message_metadata.container(self.call, self.outcome.answer, self.nonce, self.now)
