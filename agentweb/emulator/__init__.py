"""A strict, deterministic emulator of the Messages API, for demonstrations without a key and tests.

It shares no code with the application: it has its own rules, token counts, cache and prices, so the
two agree only if both are right. This module is its interface: code outside tests imports nothing
else of it.
"""

from __future__ import annotations

from agentweb.emulator.app import EmulatorApp, create_app
from agentweb.emulator.asgi import Receive, Scope, Send, respond
from agentweb.emulator.command_line import (
    CommandError,
    add_options,
    compare_from,
    start_from,
)
from agentweb.emulator.scenes.summary import summarize_text
from agentweb.emulator.script import Script, ScriptError, read_script
from agentweb.emulator.server import EmulatorServer, Server, start

__all__ = [
    "CommandError",
    "EmulatorApp",
    "EmulatorServer",
    "Receive",
    "Scope",
    "Script",
    "ScriptError",
    "Send",
    "Server",
    "add_options",
    "compare_from",
    "create_app",
    "read_script",
    "respond",
    "start",
    "start_from",
    "summarize_text",
]
