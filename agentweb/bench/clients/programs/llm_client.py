"""The `llm` command with its plugin llm-anthropic: an answer, a stream, a schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from checks import MODEL, check, finish

LLM = str(Path(sys.executable).parent / "llm")


def run_llm(*words: str) -> str:
    done = subprocess.run([LLM, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-250:])
    return done.stdout


NAME = f"anthropic/{MODEL}"


@check("answer")
def answer() -> None:
    assert run_llm("-m", NAME, "--no-stream", "Hello").strip()


@check("stream")
def stream() -> None:
    assert run_llm("-m", NAME, "Hello").strip()


@check("schema")
def schema() -> None:
    made = run_llm("-m", NAME, "--schema", "name, people int", "Bern has 140000 people.")
    assert "name" in json.loads(made)


finish()
