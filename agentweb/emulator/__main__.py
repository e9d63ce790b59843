"""Run the emulator alone: `python -m agentweb.emulator --port 8765`."""

from __future__ import annotations

import argparse
import sys

from agentweb.emulator import server
from agentweb.emulator.app import DEMO_PACE


def main() -> None:
    parser = argparse.ArgumentParser(prog="agentweb.emulator", description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--pace", type=float, default=DEMO_PACE, help="seconds between deltas")
    options = parser.parse_args()
    running = server.start(options.port, pace=options.pace)
    sys.stdout.write(f"Messages API emulator on {running.url}\n")
    sys.stdout.flush()
    try:
        running.join()
    except KeyboardInterrupt:
        running.stop()


if __name__ == "__main__":
    main()
