"""Processor time of another process, beside what that process reads of itself."""

from __future__ import annotations

from pathlib import Path

from agentweb.bench.processes import start_process, wait_for_output

SPINNING = (
    "import time\nwhile time.process_time() < 0.1234: pass\n"
    "print('spent', time.process_time())\ntime.sleep(60)"
)


def test_processor_time_is_read_more_finely_than_in_ticks(tmp_path: Path) -> None:
    process = start_process("spinning", ["-c", SPINNING], tmp_path)
    try:
        own = float(wait_for_output(process, "spent").split()[1])
        assert own <= process.processor < own + 0.005
    finally:
        process.stop()
