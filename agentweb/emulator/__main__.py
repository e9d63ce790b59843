"""Run the emulator alone: `python -m agentweb.emulator --port 8765`."""

from __future__ import annotations

import argparse
import sys

from agentweb.emulator.app import DEMO_PACE
from agentweb.emulator.command_line import (
    CommandError,
    add_options,
    compare_from,
    start_from,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="agentweb.emulator", description=__doc__)
    add_options(parser, port=8765, pace=DEMO_PACE)
    options = vars(parser.parse_args())
    try:
        if options["against"]:
            sys.exit(0 if compare_from(options, print) else 1)
        running = start_from(options)
    except CommandError as error:
        parser.error(str(error))
    sys.stdout.write(f"Messages API emulator on {running.url}\n")
    sys.stdout.flush()
    try:
        running.join()
    except KeyboardInterrupt:
        running.stop()


if __name__ == "__main__":
    main()
