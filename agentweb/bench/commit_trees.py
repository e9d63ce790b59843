"""The files of a commit beside this tree, for a run that serves both with one interpreter.

The environment is that of this process. So it must have what the commit's lock pins; packages that
only this tree's lock has are named, because code may use a package wherever it is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZipFile

from packaging.utils import canonicalize_name

from agentweb.bench.environments import execute
from agentweb.bench.processes import ROOT
from agentweb.lock_files import LOCK, read_pins

#: Has git refuse what is no commit, as the name of a file.
_COMMIT = "^{commit}"


class UnfitCommit(ValueError):
    """A commit cannot be served from here; the text says why."""


class Tree(NamedTuple):
    name: str
    folder: Path
    #: Packages of this tree's lock that the commit's lock has not.
    added: list[str]


@contextmanager
def open_commit(commit: str, repository: Path = ROOT) -> Iterator[Tree]:
    """Write the files of a commit into a folder that is deleted at the end."""
    digest = _ask_git(repository, "rev-parse", "--verify", "--end-of-options", commit + _COMMIT)
    with TemporaryDirectory(prefix="agentweb-bench-") as made:
        folder, packed = Path(made) / "tree", Path(made) / "tree.zip"
        _ask_git(repository, "archive", "-o", str(packed), digest)
        with ZipFile(packed) as files:
            files.extractall(folder)
        yield Tree(digest[:10], folder, _compare_locks(folder / LOCK, repository / LOCK))


def _ask_git(repository: Path, *words: str) -> str:
    try:
        done = execute(["git", *words], repository)
    except FileNotFoundError as error:
        raise UnfitCommit("another commit can be measured only where git is installed") from error
    if done.returncode:
        asked = words[-1].removesuffix(_COMMIT)
        raise UnfitCommit(f"git gives no commit {asked!r}: {done.stderr.strip()}")
    return done.stdout.strip()


def _compare_locks(theirs: Path, ours: Path) -> list[str]:
    """Return what only our lock has; raises UnfitCommit if something else is installed than theirs.

    What both locks pin alike fits both trees alike, whatever is installed.
    """
    if not theirs.is_file():
        raise UnfitCommit(f"the commit has no {LOCK}, so nothing tells what it needs")
    wanted, known = read_pins(theirs, here=True), read_pins(ours, here=True)
    there: dict[str, str] = {
        canonicalize_name(one.name): one.version for one in metadata.distributions()
    }
    other = sorted(
        f"{name} {', '.join(versions)} (here: {there.get(name)})"
        for name, versions in wanted.items()
        if versions != known.get(name) and there.get(name) not in versions
    )
    if other:
        raise UnfitCommit(f"the commit's {LOCK} is not what is installed: {', '.join(other)}")
    return sorted(known.keys() - wanted.keys())
