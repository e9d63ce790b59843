"""The options of the emulator's command, and what they ask for: a server, or a comparison."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentweb.emulator import server
from agentweb.emulator.comparison.against import AgainstError, compare_with_api
from agentweb.emulator.recording import RecordingError
from agentweb.emulator.script import ScriptError, read_script
from agentweb.emulator.trusted_hosts import LOOPBACK


class CommandError(Exception):
    """The command cannot be run with these options; the text says why."""


def add_options(parser: argparse.ArgumentParser, *, port: int, pace: float) -> None:
    """Add the options, with these defaults."""
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=_port, default=port, help="0 picks a free one")
    parser.add_argument(
        "--public", action="store_true", help="allow a --host that other machines can reach"
    )
    parser.add_argument(
        "--pace", type=float, default=pace, help="seconds between two pieces of an answer"
    )
    parser.add_argument("--rate", type=float, default=0.0, help="stamped deltas a second")
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="what to answer: agentweb.emulator.script"
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="add every exchange to it, one JSON a line"
    )
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="answer its recorded requests as recorded"
    )
    parser.add_argument(
        "--only-recorded", action="store_true", help="with --replay: refuse every other request"
    )

    parser.add_argument(
        "--against",
        metavar="URL",
        help="play requests against the emulator and this API (key: ANTHROPIC_API_KEY); 1: unlike",
    )
    parser.add_argument(
        "--requests", type=Path, metavar="PLACE", help="with --against: recorded ones, not ours"
    )
    parser.add_argument(
        "--cases",
        type=Path,
        metavar="FOLDER",
        default=Path("differences"),
        help="with --against: where each difference is written to",
    )


def compare_from(options: Mapping[str, Any], tell: Callable[[str], object]) -> bool:
    """Run the comparison that the options describe; return whether there are no differences.

    Raises CommandError.
    """
    try:
        return compare_with_api(
            url=options["against"],
            requests=options["requests"],
            cases=options["cases"],
            environment=os.environ,
            tell=tell,
        )
    except (AgainstError, RecordingError) as error:
        raise CommandError(str(error)) from error


def start_from(options: Mapping[str, Any]) -> server.EmulatorServer:
    """Start the server that the options describe; raises CommandError."""
    host, port = options["host"], options["port"]
    if host not in LOOPBACK and not options["public"]:
        raise CommandError(
            f"{host} can be reached by other machines, and any API key is accepted:"
            " add --public if that is wanted"
        )
    if options["only_recorded"] and not options["replay"]:
        raise CommandError("--only-recorded goes with --replay FILE")
    if options["pace"] < 0 or options["rate"] < 0:
        raise CommandError("--pace and --rate are at least 0")
    try:
        return server.start(
            port,
            host=host,
            pace=options["pace"],
            rate=options["rate"],
            script=read_script(options["script"]) if options["script"] else None,
            recording=options["record"],
            replayed=options["replay"],
            is_strict=options["only_recorded"],
        )
    except (ScriptError, RecordingError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise CommandError(f"cannot listen on {host} port {port}: {why}") from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)
