"""The subjects of `manage.py bench` that start servers of their own."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import CommandError

from agentweb.bench import (
    big_move,
    hostile,
    load,
    more_workers,
    readme_figures,
    soak,
    streaming,
    turn_cost,
    turn_pairs,
)
from agentweb.bench.commit_trees import UnfitCommit, open_commit
from agentweb.bench.processes import NotStarted, describe_machine
from agentweb.bench.rivals.rival_pages import RELAY
from agentweb.bench.rivals.rival_sites import RIVALS, install_rivals
from agentweb.bench.site_under_test import EMBEDDED, SCALED
from agentweb.marked_text import replace_marked

Options = dict[str, Any]
Say = Callable[[str], None]
_MODES = {"embedded": (EMBEDDED,), "scaled": (SCALED,), "both": (EMBEDDED, SCALED)}
#: Seconds of an answer: 600 deltas.
_SECONDS = 15.0


def add_arguments(subjects: Any) -> None:
    stream = subjects.add_parser(
        "stream",
        help="delta to browser, processor time and memory for 1 to 200 answers at once, embedded"
        " and scaled out, beside a plain Starlette relay in the same run",
    )
    counts = ",".join(map(str, streaming.COUNTS))
    stream.add_argument("--conversations", type=_counts, default=counts, metavar="N,N,...")
    stream.add_argument("--seconds", type=float, default=_SECONDS, help="of each answer")
    held = subjects.add_parser(
        "load",
        help="idle sockets, stored acknowledgements, frames to many readers, a restart under 1,000"
        " clients, a neighbour at all limits",
    )
    names = ", ".join(load.SUBJECTS)
    held.add_argument("--only", type=_names, default=names, metavar="NAME,...", help=names)
    held.add_argument("--quick", action="store_true", help="a short one, which shows little")
    turn = _add_turn(subjects)
    for subject in (stream, held, turn):
        subject.add_argument("--mode", choices=_MODES, default="both")
    _add_long_subjects(subjects)
    report = subjects.add_parser(
        "report",
        help="`stream`, `load` and `turn`; a full run is kept in agentweb/bench/results and quoted"
        " by the README there",
    )
    report.add_argument("--quick", action="store_true", help="a short one, neither kept nor quoted")
    for subject in (stream, turn, report):
        _add_rivals(subject)
    compare = subjects.add_parser(
        "compare", help="the newest kept run beside the one before it; fails when it is worse"
    )
    compare.add_argument("runs", nargs="*", metavar="FILE", help="two others")


def _add_turn(subjects: Any) -> argparse.ArgumentParser:
    turn: argparse.ArgumentParser = subjects.add_parser(
        "turn",
        help="processor time of a turn, embedded and scaled out, beside the relay in the same run;"
        " the first word of 100 and 200 people who ask within a second; with --against, whether a"
        " turn is cheaper than one of another commit",
    )
    turn.add_argument("--profile", action="store_true", help="what a turn does, by phase, only")
    turn.add_argument("--quick", action="store_true", help="fewer turns, which shows little")
    turn.add_argument("--no-bursts", action="store_true", help="single turns only")
    turn.add_argument(
        "--against", metavar="COMMIT",
        help="ask this tree, that commit and the relay one at a time in each of several rounds, a"
        " few single turns of each kind; tells whether the difference is more than chance",
    )  # fmt: skip
    turn.add_argument(
        "--rounds", type=int, metavar="N",
        help="of --against: more of them show smaller differences; the default of"
        f" {turn_pairs.ROUNDS} takes less than five minutes with --mode embedded",
    )  # fmt: skip
    turn.add_argument(
        "--long", action="store_true",
        help="with --against, turns of 400 deltas as well: two minutes more a round and mode",
    )  # fmt: skip
    return turn


def _add_rivals(subject: argparse.ArgumentParser) -> None:
    subject.add_argument(
        "--rivals", type=_rivals, default=[], metavar="NAME,...",
        help="measured in the same run, their newest versions installed by pip: "
        + ", ".join(RIVALS),
    )  # fmt: skip
    subject.add_argument("--folder", type=Path, help="of the rivals, kept for the next run")


def _add_long_subjects(subjects: Any) -> None:
    long = subjects.add_parser(
        "soak",
        help="memory of a web process over hours of conversations and sockets that come and go,"
        " and what 200 answers at once add; kept and quoted like a report",
    )
    long.add_argument("--minutes", type=float, default=480.0, help="480 by default: 8 hours")
    rude = subjects.add_parser(
        "hostile",
        help="what a visitor notices of 30 hostile tool calls at once, beside the same alone and"
        " beside 30 harmless calls; kept",
    )
    rude.add_argument("--seconds", type=float, default=30.0, help="of each of the three")
    rude.add_argument("--corpus", type=Path, metavar="FOLDER", help="files of others to be read")
    more = subjects.add_parser(
        "workers",
        help="whether each worker more adds its share: what turns cost with one, two and three"
        " workers bound to a core each, how they share them, and how soon the first words come,"
        " here and by a model of more cores",
    )
    counts = ",".join(map(str, more_workers.COUNTS))
    more.add_argument("--counts", type=_counts, default=counts, metavar="N,N,...")
    drawn = subjects.add_parser(
        "renderer",
        help="time that Chromium's main thread takes for a streamed code block, table and report of"
        " links, beside plain words of as many bytes in the same run",
    )
    drawn.add_argument("--pace", type=float, default=0.008, help="seconds between two deltas")
    moved = subjects.add_parser(
        "move",
        help="a large site with its true record moved to PostgreSQL and back, killed at random"
        " moments; verified and compared, exit code 1 where something differs",
    )
    moved.add_argument("--conversations", type=int, default=5_130, metavar="N")
    moved.add_argument("--calls", type=int, default=40, metavar="N", help="of each, about")
    moved.add_argument("--kills", type=int, default=20, metavar="N", help="on both ways together")
    moved.add_argument("--pages", type=int, default=200, metavar="N", help="conversations to read")
    moved.add_argument("--seed", type=int, default=1, metavar="N", help="of the random moments")
    moved.add_argument("--folder", type=Path, metavar="FOLDER", help="with or for the site")
    moved.add_argument("--write", action="store_true", help="write the figures of the README")


def measure(subject: str, options: Options, say: Say) -> dict[str, Any]:
    subjects = {
        "stream": _stream, "load": _load, "turn": _turn, "report": _report, "compare": _compare,
        "soak": _soak, "hostile": _hostile, "renderer": _renderer,
        "move": _move, "workers": _workers,
    }  # fmt: skip
    try:
        return subjects[subject](options, say)
    except (NotStarted, subprocess.CalledProcessError) as error:
        raise CommandError(str(error)) from error


def _stream(options: Options, say: Say) -> dict[str, Any]:
    about, counts = describe_machine(), options["conversations"]
    with _find_rivals(options, say) as folder:
        rows = streaming.measure(
            counts,
            (RELAY, *options["rivals"], *_MODES[options["mode"]]),
            options["seconds"],
            lambda row: say(streaming.format_line(row)),
            folder,
        )
    for row in rows:
        if row["side"] != RELAY:
            say(f"{row['side']}, {row['conversations']}: {row['ratio']} times the relay's time")
    return {"machine": about, "stream": rows}


@contextmanager
def _find_rivals(options: Options, say: Say) -> Iterator[Path]:
    """Install the rivals that are asked for into the folder named, or one that is not kept."""
    with TemporaryDirectory(prefix="agentweb-bench-") as made:
        folder = options["folder"] or Path(made)
        install_rivals(options["rivals"], folder, say)
        yield folder


def _turn(options: Options, say: Say) -> dict[str, Any]:
    about, is_quick = describe_machine(), bool(options["quick"])
    if options["against"] is not None:
        return {"machine": about} | _compare_trees(options, say)
    if options["rounds"] is not None or options["long"]:
        raise CommandError("--rounds and --long are of --against COMMIT", returncode=2)
    if options["profile"]:
        if options["rivals"]:
            raise CommandError("--profile shows the phases of this product alone", returncode=2)
        return {"machine": about} | _profile_turns(say, is_quick=is_quick)
    return {"machine": about} | _measure_turns(options, say, has_bursts=not options["no_bursts"])


def _measure_turns(options: Options, say: Say, *, has_bursts: bool = True) -> dict[str, Any]:
    with _find_rivals(options, say) as folder:
        return turn_cost.measure(
            (*options["rivals"], *_MODES[options["mode"]]),
            _say_row(say),
            folder,
            is_quick=bool(options["quick"]),
            has_bursts=has_bursts,
        )


def _compare_trees(options: Options, say: Say) -> dict[str, Any]:
    if options["profile"] or options["rivals"]:
        raise CommandError("--against measures this product's turns alone", returncode=2)
    if options["quick"] or options["no_bursts"]:
        raise CommandError("--against asks few turns and no bursts in any case", returncode=2)
    rounds = turn_pairs.ROUNDS if options["rounds"] is None else options["rounds"]
    if rounds < 2:
        raise CommandError("--rounds must be at least 2: one shows no spread", returncode=2)
    modes = _MODES[options["mode"]]
    if SCALED in modes and os.environ.get("BENCH_DATABASE_URL"):
        raise CommandError("two trees cannot share BENCH_DATABASE_URL: unset it", returncode=2)
    kinds = list(turn_cost.list_kinds(is_quick=True))
    if options["long"]:
        kinds.append(turn_cost.LONG)
    rows = []
    try:
        with open_commit(options["against"]) as tree:
            if tree.added:
                say(f"installed, but not in the lock of {tree.name}: {', '.join(tree.added)}")
            for mode in modes:
                found = turn_pairs.measure(tree, mode, rounds, kinds, _say_row(say))
                for row in found:
                    say(turn_pairs.format_comparison(row))
                rows += found
    except UnfitCommit as error:
        raise CommandError(str(error), returncode=2) from error
    return {"against": tree.name, "added": tree.added, "pairs": rows}


def _say_row(say: Say) -> Callable[[turn_cost.Row], None]:
    return lambda row: say(turn_cost.format_line(row))


def _profile_turns(say: Say, *, is_quick: bool) -> dict[str, Any]:
    found = turn_cost.measure_profile(is_quick=is_quick)
    for row in found["profile"]:
        for line in turn_cost.format_profile(row):
            say(line)
    return found


def _load(options: Options, say: Say) -> dict[str, Any]:
    about = describe_machine()
    found = load.measure(
        options["only"],
        _MODES[options["mode"]],
        lambda name, row: say(load.format_line(name, row)),
        is_quick=options["quick"],
    )
    return {"machine": about, "load": found}


def _report(options: Options, say: Say) -> dict[str, Any]:
    is_quick, both = options["quick"], options | {"mode": "both"}
    counts, seconds = ((1, 50), 2.0) if is_quick else (streaming.COUNTS, _SECONDS)
    with _find_rivals(options, say) as folder:
        both["folder"] = folder
        found = _stream(both | {"conversations": counts, "seconds": seconds}, say)
        found |= _load(both | {"only": list(load.SUBJECTS)}, say) | {"machine": found["machine"]}
        turn = {"machine": describe_machine()} | _measure_turns(both, say)
    found["turn"] = turn | _profile_turns(say, is_quick=is_quick)
    if is_quick:
        say(readme_figures.render_figures(found))
        return found
    accepted = readme_figures.list_runs()
    path = readme_figures.write_run(found)
    readme_figures.quote_run(found)
    say(f"kept as {path.name}, and quoted in {readme_figures.README.name} of agentweb/bench")
    for floor in readme_figures.FLOORS:
        if not floor.holds(found):
            say(f"BELOW: {floor.name}: {floor.value(found):g}, the limit is {floor.limit:g}")
    for worse in (
        readme_figures.find_losses(readme_figures.read_run(accepted[-1]), found) if accepted else ()
    ):
        say(f"WORSE: {worse}")
    return found


def _soak(options: Options, say: Say) -> dict[str, Any]:
    found = {"machine": describe_machine()} | soak.measure(options["minutes"], say)
    path = readme_figures.write_run(found, readme_figures.RESULTS / soak.MARKS)
    replace_marked(readme_figures.README, soak.MARKS, soak.render(found))
    say(f"{soak.format_slope(found)} Kept as {path.name}, and quoted.")
    return found


def _hostile(options: Options, say: Say) -> dict[str, Any]:
    about = {"machine": describe_machine()}
    found = about | hostile.measure(options["seconds"], options["corpus"], say)
    path = readme_figures.write_run(found, readme_figures.RESULTS / "hostile")
    say(f"kept as {path.name}")
    return found


def _workers(options: Options, say: Say) -> dict[str, Any]:
    about = describe_machine()
    rows = more_workers.measure(options["counts"], lambda row: say(more_workers.format_line(row)))
    return {"machine": about, "workers": rows}


def _renderer(options: Options, say: Say) -> dict[str, Any]:
    # Playwright is there where the project is developed only.
    from agentweb.bench import renderer_time

    rows = renderer_time.measure(options["pace"], say)
    if any(not row["is_within"] for row in rows):
        raise CommandError("a long block takes too many times the time of plain words")
    return {"machine": describe_machine(), "renderer": rows}


def _move(options: Options, say: Say) -> dict[str, Any]:
    names = ("conversations", "calls", "kills", "pages", "seed")
    wanted = big_move.Wanted(*(options[name] for name in names))
    if min(wanted.conversations - 1, wanted.calls, wanted.kills + 1, wanted.pages) < 1:
        raise CommandError("--conversations is at least 2, --calls and --pages 1", returncode=2)
    with TemporaryDirectory(prefix="agentweb-bench-") as made:
        folder = options["folder"] or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        found = {"machine": describe_machine()} | big_move.Measure(folder, wanted, say).run()
    if options["write"]:
        replace_marked(readme_figures.README, big_move.MARKS, big_move.render(found))
    if found["differences"]:
        raise CommandError("\n".join(found["differences"]))
    return found


def _compare(options: Options, say: Say) -> dict[str, Any]:
    given = [Path(name) for name in options["runs"]] or readme_figures.list_runs()[-2:]
    if len(given) != 2 or not all(path.is_file() for path in given):
        raise CommandError("there are not two runs to compare", returncode=2)
    worse = readme_figures.find_losses(*(readme_figures.read_run(path) for path in given))
    if worse:
        raise CommandError("\n".join(worse))
    say(f"nothing is more than {readme_figures.MOST_LOSS:.0%} worse than before")
    return {"worse": worse}


def _counts(text: str) -> list[int]:
    found = [int(word) for word in text.split(",") if word.strip().isdigit()]
    if not found or len(found) != len(text.split(",")) or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text}: whole numbers with commas between them")
    return found


def _names(text: str) -> list[str]:
    return _choose(text, load.SUBJECTS, "subject")


def _rivals(text: str) -> list[str]:
    return _choose(text, RIVALS, "rival")


def _choose(text: str, known: Iterable[str], what: str) -> list[str]:
    found, names = [word.strip() for word in text.split(",")], list(known)
    if unknown := [name for name in found if name not in names]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is no {what}; there are {', '.join(names)}")
    return found
