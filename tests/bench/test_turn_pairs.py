"""A commit beside this tree: real checkouts, a real run, and the interval against its sources."""

from __future__ import annotations

import math
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agentweb.bench import turn_pairs
from agentweb.bench.commit_trees import UnfitCommit, open_commit
from agentweb.bench.processes import ROOT, clean_environment
from agentweb.bench.rivals.rival_pages import RELAY
from agentweb.bench.site_under_test import EMBEDDED
from agentweb.bench.streaming import RATE, make_question
from agentweb.bench.turn_cost import Kind, Row
from agentweb.bench.turn_pairs import OURS, compare, format_comparison
from agentweb.lock_files import LOCK

with_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
PINS = "django==0.1 \\\n"
SERVED = ("agentweb", "conversations", "tools", "templates", "static")
#: Student's own example (1908): hours of sleep gained by ten people with each of two drugs.
FIRST = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SECOND = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_the_interval_is_that_of_the_paired_t_test() -> None:
    # R 4: t.test(first, second, paired = TRUE) gives -1.58 and -2.4598858 to -0.7001142.
    assert compare(FIRST, SECOND) == {"difference": -1.58, "low": -2.46, "high": -0.7}


def test_the_quantiles_are_those_of_the_density() -> None:
    for freedom, quantile in enumerate(turn_pairs._T, 1):
        scale = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2)
        scale /= math.sqrt(math.pi * freedom)
        step, steps = quantile / 20_000, 20_000
        within = sum(
            (1 + ((at + 0.5) * step) ** 2 / freedom) ** (-(freedom + 1) / 2) for at in range(steps)
        )
        assert 2 * scale * step * within == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ((39.0, 41.0, 40.0), "no difference shown"),
        ((42.0, 42.1, 41.9), "this tree is cheaper"),
        ((38.1, 38.0, 37.9), "this tree is dearer"),
    ],
)
def test_a_difference_is_said_only_where_its_interval_leaves_zero_out(
    theirs: tuple[float, ...], said: str
) -> None:
    ours = (40.0, 40.1, 39.9)
    sides = {RELAY: [5.0, 6.0, 5.5], OURS: ours, "0123456789": theirs}
    row = {"mode": EMBEDDED, "kind": "later turn", "milliseconds": sides}
    lines = format_comparison(row | compare(ours, theirs)).splitlines()
    assert lines[0].startswith("embedded, later turn")
    assert lines[1].split() == ["relay", "5.5", "(5.0", "to", "6.0)"]
    assert lines[-1].endswith(f": {said}")


@with_git
def test_the_tree_is_the_commits_and_goes_at_the_end(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(PINS)
    (tmp_path / "page.html").write_text("before")
    _commit(tmp_path)
    (tmp_path / LOCK).write_text(PINS + "uvloop==0.23.0 \\\n")
    (tmp_path / "page.html").write_text("after")
    with open_commit("HEAD", tmp_path) as tree:
        assert (tree.folder / "page.html").read_text() == "before"
        assert tree.added == ["uvloop"]
        assert len(tree.name) == 10
    assert not tree.folder.exists()
    assert (tmp_path / "page.html").read_text() == "after"


@with_git
def test_a_commit_fits_by_what_is_installed_where_the_locks_differ(tmp_path: Path) -> None:
    """What its lock has for other systems is not missed."""
    elsewhere = "pywin32==312 ; sys_platform == 'win32' \\\n"
    (tmp_path / LOCK).write_text(f"django=={version('django')} \\\n{elsewhere}")
    _commit(tmp_path)
    (tmp_path / LOCK).write_text(PINS)
    with open_commit("HEAD", tmp_path) as tree:
        assert tree.added == []


@with_git
@pytest.mark.parametrize(
    ("lock", "why"),
    [
        (PINS + "unheard-of==2 \\\n", r"django 0\.1 \(here: .*unheard-of 2 \(here: None"),
        ("", "the commit has no requirements.lock"),
    ],
)
def test_a_commit_of_another_environment_is_refused(tmp_path: Path, lock: str, why: str) -> None:
    (tmp_path / "page.html").write_text("before")
    if lock:
        (tmp_path / LOCK).write_text(lock)
    _commit(tmp_path)
    shutil.copy(ROOT / LOCK, tmp_path)
    with pytest.raises(UnfitCommit, match=why), open_commit("HEAD", tmp_path):
        pass


@with_git
def test_a_file_and_a_folder_without_a_repository_are_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UnfitCommit, match="not a git repository"), open_commit("HEAD", tmp_path):
        pass
    (tmp_path / "page.html").write_text("before")
    _commit(tmp_path)
    for what in ("page.html", "HEAD:page.html"):
        with pytest.raises(UnfitCommit, match=f"no commit '{what}"), open_commit(what, tmp_path):
            pass


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--against", "no-such-commit"), "no commit 'no-such-commit'|only where git is"),
        (("--against", ""), "no commit ''|only where git is"),
        (("--against", "HEAD", "--rounds", "1"), "at least 2"),
        (("--against", "HEAD", "--quick"), "in any case"),
        (("--rounds", "9"), "of --against"),
        (("--long",), "of --against"),
        (("--against", "HEAD", "--profile"), "this product's turns alone"),
        (("--against", "HEAD", "--rivals", "litellm"), "this product's turns alone"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_2(given: tuple[str, ...], why: str) -> None:
    with pytest.raises(CommandError, match=why) as caught:
        call_command("bench", "turn", *given, stdout=StringIO())
    assert caught.value.returncode == 2


def test_a_report_compares_no_commits() -> None:
    with pytest.raises(CommandError, match="unrecognized arguments: --against HEAD"):
        call_command("bench", "report", "--against", "HEAD", stdout=StringIO())


def test_two_trees_do_not_share_a_database_and_need_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(CommandError, match="cannot share"):
        call_command("bench", "turn", "--against", "HEAD", stdout=StringIO())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="only where git is installed"):
        call_command("bench", "turn", "--against", "HEAD", "--mode", "embedded", stdout=StringIO())


@with_git
def test_a_commit_is_served_by_its_own_code_beside_this_tree(tmp_path: Path) -> None:
    """The commit is this tree with a longer page, so its turns send more bytes."""
    for name in SERVED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("manage.py", "pyproject.toml", LOCK):
        shutil.copy(ROOT / name, tmp_path)
    with (tmp_path / "templates/conversations/events/turn_closed.html").open("a") as page:
        page.write("<!--" + "x" * 5_000 + "-->")
    _commit(tmp_path)
    kind, rows = Kind("one turn", 1, make_question(1 / RATE), 1, 1), list[Row]()
    with open_commit("HEAD", tmp_path) as tree:
        found = turn_pairs.measure(tree, EMBEDDED, 2, [kind], rows.append)
    order = [RELAY, OURS, tree.name]
    assert [row["side"] for row in rows] == [*order, *reversed(order)]
    sent = {row["side"]: row["bytes"] for row in rows}
    assert sent[tree.name] > sent[OURS] + 4_000
    assert {side: len(taken) for side, taken in found[0]["milliseconds"].items()} == {
        RELAY: 2, OURS: 2, tree.name: 2,
    }  # fmt: skip
    assert found[0]["low"] <= found[0]["difference"] <= found[0]["high"]


@with_git
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this tree is no checkout")
def test_a_run_that_is_ended_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "bench", "turn", "--against", "HEAD", "--mode", "embedded"],
        cwd=ROOT,
        env=clean_environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("agentweb-bench-*/tree/manage.py")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()
    assert list(tmp_path.iterdir()) == []


def _commit(folder: Path) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--no-gpg-sign", "-m", "All"]):
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
