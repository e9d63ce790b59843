"""Convert a formula in LaTeX to MathML, or refuse it.

latex2mathml parses LaTeX into a tree, which the module `mathml` writes out again. Macros can expand
without bound, so a formula that defines one is refused, like one that the parser does not know; its
source is shown instead. A converter in native code was faster, but a deeply nested formula ended
the whole process; here too much depth is an exception.
"""

from __future__ import annotations

import re
from functools import lru_cache
from xml.etree.ElementTree import Element

from latex2mathml.converter import Converter

from conversations.rendering.mathml import NotMath, write_mathml

#: Most characters of a formula.
MAX_FORMULA = 4_000

_REFUSED = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|[gex]?def|let|DeclareMathOperator|newenvironment"
    r"|href|url|class|style|unicode|verb|includegraphics|html\w*)(?![a-zA-Z])"
    r"|\\operatorname(?:withlimits|\*)?\s*\{[^}]{80}"
)
_SIMILAR = {
    "aligned": "align*", "align": "align*", "alignedat": "align*", "eqnarray": "align*",
    "eqnarray*": "align*", "flalign": "align*", "gathered": "matrix", "gather": "matrix",
    "gather*": "matrix", "multline": "matrix", "multline*": "matrix", "dcases": "cases",
    "equation": "", "equation*": "", "math": "", "displaymath": "",
}  # fmt: skip
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([a-zA-Z]+\*?)\}")
_UNSEEN = re.compile(r"\\label\s*\{[^}]*\}|\\(?:nonumber|notag|displaylimits)(?![a-zA-Z])")


@lru_cache(maxsize=512)
def convert_latex(source: str, *, is_display: bool) -> str:
    """Return the MathML of a formula; raises NotMath."""
    if len(source) > MAX_FORMULA or _REFUSED.search(source):
        raise NotMath
    try:
        tree = _parse_tree(
            _UNSEEN.sub("", _ENVIRONMENT.sub(_replace_environment, source)), is_display=is_display
        )
        return write_mathml(tree, is_display=is_display)
    except RecursionError:
        raise NotMath from None


def _parse_tree(source: str, *, is_display: bool) -> Element:
    try:
        math = Converter(display="block" if is_display else "inline").convert_to_element(source)
    except Exception as error:
        # The parser raises arbitrary exceptions: StopIteration, IndexError, AttributeError.
        raise NotMath from error
    return math[0]


def _replace_environment(found: re.Match[str]) -> str:
    name = _SIMILAR.get(found[2], found[2])
    return f"\\{found[1]}{{{name}}}" if name else ""
