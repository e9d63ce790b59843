"""A small schema language, with the error texts and paths of the API's validator.

A check is a function of one value. It raises `Misfit`, and every container the error passes through
puts its part of the path in front, so that no path is built while everything fits. Declared fields
are looked at first, in their order, unknown ones after them: that is the order in which the API
complains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from agentweb.emulator.errors import Invalid
from agentweb.emulator.json_codec import Value

Check: TypeAlias = Callable[[Value], None]


class Misfit(Exception):
    """A value that does not fit, and its path."""

    def __init__(self, text: str, *path: str | int) -> None:
        super().__init__(text)
        self.text = text
        self.path = list(path)

    def within(self, *path: str | int) -> Misfit:
        self.path[:0] = path
        return self

    def refusal(self) -> Invalid:
        return Invalid(f"{'.'.join(map(str, self.path))}: {self.text}" if self.path else self.text)


def anything(value: Value) -> None:
    return None


def string(value: Value) -> None:
    if type(value) is not str:
        raise Misfit("Input should be a valid string")


def boolean(value: Value) -> None:
    if type(value) is not bool:
        raise Misfit("Input should be a valid boolean")


def mapping(value: Value) -> None:
    if type(value) is not dict:
        raise Misfit("Input should be a valid dictionary")


def integer(low: int | None = None, high: int | None = None) -> Check:
    def check(value: Value) -> None:
        if type(value) is not int and not (type(value) is float and value.is_integer()):
            raise Misfit("Input should be a valid integer")
        if low is not None and value < low:
            raise Misfit(f"Input should be greater than or equal to {low}")
        if high is not None and value > high:
            raise Misfit(f"Input should be less than or equal to {high}")

    return check


def number(low: float, high: float) -> Check:
    def check(value: Value) -> None:
        if type(value) not in (int, float):
            raise Misfit("Input should be a valid number")
        if value < low:
            raise Misfit(f"Input should be greater than or equal to {low:g}")
        if value > high:
            raise Misfit(f"Input should be less than or equal to {high:g}")

    return check


def matching(pattern: str) -> Check:
    compiled = re.compile(pattern)

    def check(value: Value) -> None:
        string(value)
        if not compiled.search(value) or value.endswith("\n"):
            raise Misfit(f"String should match pattern '{pattern}'")

    return check


def one_of(*values: str) -> Check:
    quoted = [f"'{value}'" for value in values]
    listed = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"

    def check(value: Value) -> None:
        if type(value) is not str or value not in values:
            raise Misfit(f"Input should be {listed}")

    return check


def nullable(inner: Check) -> Check:
    def check(value: Value) -> None:
        if value is not None:
            inner(value)

    return check


def listing(inner: Check, *, most: int | None = None) -> Check:
    def check(value: Value) -> None:
        if type(value) is not list:
            raise Misfit("Input should be a valid list")
        if most is not None and len(value) > most:
            raise Misfit(
                f"List should have at most {most} items after validation, not {len(value)}"
            )
        for index, item in enumerate(value):
            try:
                inner(item)
            except Misfit as misfit:
                raise misfit.within(index) from None

    return check


def either(text: Check, items: Check) -> Check:
    """Return a check for a string or a list."""

    def check(value: Value) -> None:
        if type(value) is list:
            items(value)
        elif type(value) is str:
            text(value)
        else:
            raise Misfit("Input should be a valid string or a valid list")

    return check


def record(
    required: Mapping[str, Check],
    optional: Mapping[str, Check] | None = None,
    *,
    open: bool = False,
) -> Check:
    fields = [(name, check, True) for name, check in required.items()]
    fields += [(name, check, False) for name, check in (optional or {}).items()]
    known = frozenset(name for name, _, _ in fields)

    def check(value: Value) -> None:
        if type(value) is not dict:
            raise Misfit("Input should be a valid dictionary or object to extract fields from")
        seen = 0
        for name, inner, needed in fields:
            if name in value:
                seen += 1
                try:
                    inner(value[name])
                except Misfit as misfit:
                    raise misfit.within(name) from None
            elif needed:
                raise Misfit("Field required", name)
        if seen != len(value) and not open:
            raise Misfit("Extra inputs are not permitted", next(n for n in value if n not in known))

    return check


def tagged(options: Mapping[str, Check], *, default: str | None = None) -> Check:
    """Return a check for a union tagged by `type`; the tag becomes part of the path."""
    names = ", ".join(f"'{name}'" for name in options)

    def check(value: Value) -> None:
        if type(value) is not dict:
            raise Misfit("Input should be a valid dictionary or object to extract fields from")
        tag = value.get("type") or default
        if tag is None:
            raise Misfit("Field required", "type")
        inner = options.get(tag) if type(tag) is str else None
        if inner is None:
            raise Misfit(
                f"Input tag '{tag}' found using 'type' does not match any of the "
                f"expected tags: {names}"
            )
        try:
            inner(value)
        except Misfit as misfit:
            raise misfit.within(tag) from None

    return check


def constant(text: str) -> Check:
    """Return a check for the tag field itself, which the union has already checked."""
    return one_of(text)
