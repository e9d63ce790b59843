"""instructor: a typed answer by a forced tool, and a partial one as it streams."""

from __future__ import annotations

import anthropic
import instructor
from checks import MODEL, check, finish
from pydantic import BaseModel

client = instructor.from_anthropic(anthropic.Anthropic(max_retries=0))
MESSAGES = [{"role": "user", "content": "Bern has 140000 people."}]


class City(BaseModel):
    name: str
    people: int


@check("create")
def create() -> None:
    made = client.messages.create(
        model=MODEL, max_tokens=500, messages=MESSAGES, response_model=City
    )
    assert isinstance(made, City)


@check("create_partial")
def stream() -> None:
    parts = client.messages.create_partial(
        model=MODEL, max_tokens=500, messages=MESSAGES, response_model=City
    )
    assert list(parts)[-1].name is not None


finish()
