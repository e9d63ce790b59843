"""What other programs do before each call, to compare the engine with in the same run.

The naive byte trim and the tool-result scan are implemented as published; LangChain's are its own
code if it is installed, which this project does not require.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

Messages = list[dict[str, Any]]
BUDGET = 720_000
TOKEN_BUDGET = 100_000


def trim_by_bytes(messages: Messages) -> int:
    """Encode the whole conversation to find its size and where a trimmed one would begin."""
    size = len(json.dumps(messages).encode())
    first = 0
    while size > BUDGET and first < len(messages) - 1:
        size -= len(json.dumps(messages[first]).encode())
        first += 1
    return first


def scan_results(messages: Messages) -> int:
    """Count the tool results that are still long."""
    found = 0
    for message in messages[:-1]:
        for block in message["content"]:
            if block["type"] == "tool_result" and len(block["content"]) > 500:
                found += "[truncated" not in block["content"]
    return found


def measure_milliseconds(run: Callable[[], object], runs: int) -> float:
    """Return the median milliseconds of CPU over several runs."""
    times = []
    for _ in range(runs):
        started = time.thread_time_ns()
        run()
        times.append(time.thread_time_ns() - started)
    return median(times) / 1e6


def measure_baselines(messages: Messages, runs: int) -> dict[str, float]:
    """Measure milliseconds per call of each baseline that is available."""
    found = {
        "byte_trim": measure_milliseconds(lambda: trim_by_bytes(messages), runs),
        "result_scan": measure_milliseconds(lambda: scan_results(messages), runs),
    }
    if importlib.util.find_spec("langchain") is not None:
        found |= _measure_langchain(messages, runs)
    return found


def _measure_langchain(messages: Messages, runs: int) -> dict[str, float]:
    core: Any = importlib.import_module("langchain_core.messages")
    counting: Any = importlib.import_module("langchain_core.messages.utils")
    middleware: Any = importlib.import_module("langchain.agents.middleware")
    converted = _convert_messages(messages, core)
    count = counting.count_tokens_approximately
    found = {
        "langchain_trim": measure_milliseconds(
            lambda: core.trim_messages(
                converted, max_tokens=TOKEN_BUDGET, token_counter=count, start_on="human"
            ),
            runs,
        )
    }
    edit = middleware.ClearToolUsesEdit(trigger=TOKEN_BUDGET)
    # It changes its list in place, so in use it gets a copy of the whole list for each call.
    found["langchain_editing"] = measure_milliseconds(
        lambda: edit.apply([m.model_copy() for m in converted], count_tokens=count), runs
    )
    found["langchain_summary"] = measure_milliseconds(
        _build_summarization(middleware, converted), runs
    )
    return found


def _build_summarization(middleware: Any, converted: list[Any]) -> Callable[[], object]:
    """Return one call of its summarization, with a model whose answer costs nothing."""
    models: Any = importlib.import_module("langchain_core.language_models.fake_chat_models")
    model = models.FakeListChatModel(responses=["They compared offers."])
    step = middleware.SummarizationMiddleware(model, trigger=("tokens", TOKEN_BUDGET))
    return lambda: step.before_model({"messages": list(converted)}, None)


def _convert_messages(messages: Messages, core: Any) -> list[Any]:
    found = []
    for at, message in enumerate(messages):
        blocks = message["content"]
        texts = "".join(block["text"] for block in blocks if block["type"] == "text")
        if blocks[0]["type"] == "tool_result":
            one = core.ToolMessage(blocks[0]["content"], tool_call_id=blocks[0]["tool_use_id"])
        elif message["role"] == "user":
            one = core.HumanMessage(texts)
        else:
            calls = [
                {"name": block["name"], "args": block["input"], "id": block["id"]}
                for block in blocks
                if block["type"] == "tool_use"
            ]
            one = core.AIMessage(texts, tool_calls=calls)
        one.id = str(at)
        found.append(one)
    return found
