"""LangChain by langchain-anthropic: answers, streams, tools, structured output."""

from __future__ import annotations

from checks import MODEL, check, finish
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

model = ChatAnthropic(model=MODEL, max_tokens=1_000, max_retries=0)
FACT = "Bern has 140000 people."


class City(BaseModel):
    """A city."""

    name: str
    people: int


@tool
def list_files(path: str = "") -> str:
    """List the files of a folder."""
    return "a.txt\nb.txt"


@check("invoke")
def invoke() -> None:
    assert model.invoke("Hello").text


@check("stream")
def stream() -> None:
    assert len("".join(part.text for part in model.stream("Hello"))) > 3


@check("tool round")
def run_tools() -> None:
    messages = [HumanMessage("list files")]
    bound = model.bind_tools([list_files])
    answer = bound.invoke(messages)
    call = answer.tool_calls[0]
    result = list_files.invoke(call["args"])
    messages += [answer, ToolMessage(result, tool_call_id=call["id"])]
    assert "b.txt" in bound.invoke(messages).text


@check("structured output by a tool")
def structure_by_tool() -> None:
    assert isinstance(model.with_structured_output(City).invoke(FACT), City)


@check("structured output by a schema")
def structure_by_schema() -> None:
    shaped = model.with_structured_output(City, method="json_schema")
    assert isinstance(shaped.invoke(FACT), City)


@check("stream of a tool call")
def stream_tools() -> None:
    whole = None
    for part in model.bind_tools([list_files]).stream("list files"):
        whole = part if whole is None else whole + part
    assert whole is not None
    assert whole.tool_calls[0]["name"] == "list_files"


finish()
