"""Table S64: what a path may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.framework.errors import PathRefusedError
from tools.workspace.paths import split_path

REFUSED = [
    *(
        "../x",
        "..",
        "a/../../x",
        "a/..",
        "./..",
        "/etc/passwd",
        "/",
        "//etc",
        "~",
        "~/x",
        "~root/x",
    ),
    *(
        "..\\x",
        "a\\b",
        "C:\\x",
        "\\\\host\\share",
        "a\0b",
        "\0",
        "a\nb",
        "a\tb",
        "a\x7fb",
        "a\x85b",
    ),
    *(
        "a\u202eb",
        "a\u2028b",
        "a\u200bb",
        "\ufeffa",
        "a\ud800b",
        "a\U000e0041b",
        "x.",
        "x ",
        "a./b",
    ),
    *("a /b", "...", ". .", "CON", "con", "Con.txt", "a/NUL", "aux.md", "COM1", "lpt9.log", "COM¹"),
    *("x" * 256, "é" * 128, "/".join(["x" * 200] * 21), "x/" * 17, ".agentweb-1", "a/.agentweb-x"),
]
STAYS = [
    ("notes/plan.md", ("notes", "plan.md")),
    ("./notes//plan.md", ("notes", "plan.md")),
    ("%2e%2e/x", ("%2e%2e", "x")),
    ("a~/b~c", ("a~", "b~c")),
    ("..x", ("..x",)),
    (".env", (".env",)),
    ("CONSOLE", ("CONSOLE",)),
    (" lead", (" lead",)),
    ("x" * 255, ("x" * 255,)),
    ("cafe\u0301", ("caf\u00e9",)),
    ("👩\u200d💻.txt", ("👩\u200d💻.txt",)),
    ('a".html', ('a".html',)),
    ("", ()),
    (".", ()),
    ("./", ()),
]


@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_could_mean_something_else_is_refused(path: str) -> None:
    with pytest.raises(PathRefusedError):
        split_path(path)


def test_a_way_up_is_refused_in_so_many_words() -> None:
    with pytest.raises(PathRefusedError, match="stay inside the workspace"):
        split_path("a/../../x")


@pytest.mark.parametrize(("path", "names"), STAYS)
def test_a_plain_path_is_its_names(path: str, names: tuple[str, ...]) -> None:
    assert split_path(path) == names


def test_both_spellings_of_a_word_are_one_file() -> None:
    assert split_path("cafe\u0301.md") == split_path("caf\u00e9.md")


PIECES = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "~", "\0", "a", "é", "%2e", " ", "\u202e", "CON", "．", "／"]
    )
    | st.text(max_size=4)
)


@given(PIECES.map("".join))
def test_no_path_has_a_name_that_leads_elsewhere(path: str) -> None:
    try:
        names = split_path(path)
    except PathRefusedError:
        return
    for name in names:
        assert name not in ("", ".", "..")
        assert not {"/", "\\", "\0", "\n"} & set(name)
        assert 0 < len(name.encode()) <= 255
    assert split_path("/".join(names)) == names
