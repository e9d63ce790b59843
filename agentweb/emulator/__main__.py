"""Run the emulator alone: `python -m agentweb.emulator --port 8765`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentweb.emulator import server
from agentweb.emulator.app import DEMO_PACE
from agentweb.emulator.script import read_script


def main() -> None:
    parser = argparse.ArgumentParser(prog="agentweb.emulator", description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--pace", type=float, default=DEMO_PACE, help="seconds between deltas")
    parser.add_argument("--rate", type=float, default=0.0, help="stamped deltas a second")
    parser.add_argument("--script", type=Path, help="a file that says what to answer")
    options = parser.parse_args()
    script = read_script(options.script) if options.script else None
    running = server.start(options.port, pace=options.pace, rate=options.rate, script=script)
    sys.stdout.write(f"Messages API emulator on {running.url}\n")
    sys.stdout.flush()
    try:
        running.join()
    except KeyboardInterrupt:
        running.stop()


if __name__ == "__main__":
    main()
