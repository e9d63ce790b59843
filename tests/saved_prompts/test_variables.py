"""The grammar of variables: what is parsed, what is filled in, and which errors say what."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.saved_prompts.variables import (
    MOST_CHOICES,
    MOST_VARIABLES,
    ParsedPrompt,
    Variable,
    VariableError,
    fill_in,
    parse_prompt,
)

#: Shapes that published collections of prompts have: variables of other programs, code, formulas.
AS_THEY_ARE = [
    "I want you to act as a ${Position:Software Developer} interviewer.",
    'Answer as JSON: {"title": "...", "tags": {"a": [1, 2]}}',
    "Replace [TOPIC] and <audience>, then {language}.",
    "function f() { if (x) { return {}; } }",
    r"The sum is $\frac{1}{\sqrt{2}}$, and C:\Users\{name}.",
    "}} closes nothing, { { opens nothing",
    "",
]


@pytest.mark.parametrize("text", AS_THEY_ARE)
def test_a_text_without_variables_stays_as_it_is(text: str) -> None:
    assert parse_prompt(text).variables == ()
    assert fill_in(parse_prompt(text), []) == text


def test_the_three_forms_of_a_variable() -> None:
    parsed = parse_prompt(
        "About {{topic}} in a {{tone = friendly }} tone, {{length: short | long }},"
        " {{url=https://example.org/?a=b}} {{time:10|11}} {{note=}} {{Überschrift der Folie}}."
    )
    assert parsed.variables == (
        Variable("topic"),
        Variable("tone", "friendly"),
        Variable("length", choices=("short", "long")),
        Variable("url", "https://example.org/?a=b"),
        Variable("time", choices=("10", "11")),
        Variable("note", ""),
        Variable("Überschrift der Folie"),
    )
    filled = fill_in(parsed, ["{{bees}}", "calm", "short", "u", "10", "", "\\{{"])
    assert filled == "About {{bees}} in a calm tone, short, u 10  \\{{."


def test_a_variable_is_described_once_wherever_it_is_named() -> None:
    parsed = parse_prompt("{{Name}} {{name=Ada}} {{NAME}} {{name=Ada}}")
    assert parsed.variables == (Variable("Name", "Ada"),)
    assert fill_in(parsed, ["Eve"]) == "Eve Eve Eve Eve"


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (r"\{{a}}", "{{a}}"),
        (r"\\{{a}}", r"\X"),
        (r"\\\{{a}}", r"\{{a}}"),
        (r"\n \\ \x", r"\n \\ \x"),
        ("{{a}}}", "X}"),
        (r"{\{{", "{{{"),
        (r"\textbf{{{a}}}", r"\textbf{X}"),
        (r"\{{{{a}}}}", "{{X}}"),
        (r"\{{{{{a}}", "{{{X"),
        (r"\\{{{a}}", r"\{X"),
    ],
)
def test_a_backslash_keeps_braces(text: str, filled: str) -> None:
    parsed = parse_prompt(text)
    assert fill_in(parsed, ["X"] * len(parsed.variables)) == filled


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a\n{{topic\n}}", "unclosed", 2),
        ("{{", "unclosed", 1),
        ("{{}}", "name", 1),
        ("{{ =x}}", "name", 1),
        ("x\n\n{{#if a}}", "name", 3),
        ('{{"key": 1}}', "name", 1),
        ("{{a=b{c}}", "name", 1),
        ("{{a\tb}}", "name", 1),
        (r"{{a\b}}", "name", 1),
        ("{{" + "a" * 41 + "}}", "long_name", 1),
        ("{{a:one}}", "choices", 1),
        ("{{a:one||two}}", "choices", 1),
        ("{{a:one|one}}", "choices", 1),
        ("{{a:" + "|".join(map(str, range(MOST_CHOICES + 1))) + "}}", "many_choices", 1),
        ("{{a=1}}\n{{a=2}}", "differs", 2),
        ("{{a=1}} {{A:1|2}}", "differs", 1),
        (" ".join(f"{{{{v{n}}}}}" for n in range(MOST_VARIABLES + 1)), "too_many", 1),
    ],
)
def test_what_is_malformed_is_refused_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(VariableError) as caught:
        parse_prompt(text)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert len(caught.value.found) <= 40


BRACED = st.text(alphabet="{}\\=:|ab \n", max_size=30)


def escape(text: str) -> str:
    return re.sub(r"(\\*)\{\{", lambda found: found[1] * 2 + r"\{{", text)


@given(BRACED | st.text(max_size=30))
def test_an_escaped_text_is_the_text(text: str) -> None:
    assert fill_in(parse_prompt(escape(text)), []) == text


@given(st.lists(BRACED, min_size=1, max_size=4), BRACED)
def test_what_is_filled_in_is_not_parsed(parts: list[str], value: str) -> None:
    # A backslash before the braces of a variable is doubled.
    texts = [part.rstrip("\\{") for part in parts]
    parsed = parse_prompt("{{a}}".join(map(escape, texts)))
    assert fill_in(parsed, [value] * len(parsed.variables)) == value.join(texts)


@given(BRACED)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = parse_prompt(text)
    except VariableError:
        return
    assert isinstance(parsed, ParsedPrompt)
    assert {each for each in parsed.pieces if isinstance(each, int)} == set(
        range(len(parsed.variables))
    )
