"""Run one generated conversation: calls, undo, restored originals, other models.

A story keeps a log as the app does (entries with parents, so that an undo is another path) and
drives `prepare` as the runner does: it records what is proposed, goes harder after an overflow, and
starts every turn from the replayed path. What must hold is checked where it happens
(`InvariantChecker`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from conversations.context.errors import RuleError, WindowError
from conversations.context.pipeline import Prepared, Situation
from conversations.context.policy.gauge import Report
from conversations.context.steps.protocol import CompactionReply, CompactionWanted
from conversations.context.steps.restore import build_restore
from conversations.context.view import edits, wire
from conversations.context.view.edits import Transformation
from conversations.context.view.view import Message, View
from tests.context.endpoints import WINDOWS, Call, Endpoint, Expected, Loaded, is_open
from tests.context.invariants import InvariantChecker
from tests.context.replay import Entry, replay_entries
from tests.context.samples import Shell
from tests.context.signatures import Seals
from tests.context.strategies import RATES, Maker, policy_from_seed, writer_from_seed

KINDS = ("clearing", "ingest", "compaction", "rounds", "summary", "trim", "shrink")
OVERFLOWS = 3
_MOST_ROUNDS = 3


class Story:
    """The life of one conversation, named by its seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(f"story {seed}")
        self.maker = Maker(seed)
        self.seals = Seals()
        self.log: dict[int, tuple[int, Entry | Expected | None]] = {}
        self.calls: dict[int, Call] = {}
        #: The model that made a compaction block, by the block's signature.
        self.makers: dict[str, str] = {}
        self.rejections: set[int] = set()
        self.tip = 0
        #: Entries at which a person may speak, or ask for another answer.
        self.ends: list[int] = []
        self.prompts: list[int] = []
        self.restored: set[int] = set()
        self.policy = policy_from_seed(seed + 1)
        self.endpoint = self.choose_endpoint()
        self.pins: frozenset[str | int] = frozenset()
        self.counts: Counter[str] = Counter()
        self.checker = InvariantChecker(self)
        #: Told of each view that is sent.
        self.sends: Callable[[View], object] = lambda view: None

    def live(self) -> Counter[str]:
        """Live it to the end and count what happened; raises AssertionError where a law breaks."""
        self.import_history()
        for _ in range(self.chance.choice([1, 2, 3, 4, 6])):
            self.turn()
            if self.ends:
                self.something_happens()
        return self.counts

    # What the log holds

    def add(self, entry: Entry | Expected | None, number: int = 0) -> None:
        number = number or self.maker.next_number()
        self.log[number] = (self.tip, entry)
        self.tip = number

    def path(self) -> list[tuple[int, Entry | Expected]]:
        found: list[tuple[int, Entry | Expected]] = []
        at = self.tip
        while at:
            number = at
            at, entry = self.log[at]
            if entry is not None:
                found.append((number, entry))
        return found[::-1]

    def load(self) -> Loaded:
        path = self.path()
        view = View()
        for _, entry in path:
            if isinstance(entry, Expected):
                view = view.with_cleared(entry.ids)
            else:
                view = replay_entries([entry], view)
        report, bound_to = None, ""
        for number, _ in reversed(path):
            call = self.calls.get(number)
            if call is not None:
                report = call.report if call.model == self.endpoint.model else None
                bound_to = call.binding
                break
        return Loaded(view, report, bound_to, self._rejected(), self.maker_of(view))

    def maker_of(self, view: View) -> str:
        """Name the model that made the compaction block in view."""
        for message in view.messages[:1]:
            for block in message.blocks[:1]:
                return self.makers.get(str(block.value.get("signature")), "")
        return ""

    def _rejected(self) -> int:
        at, count = self.tip, 0
        while at and count < 5:
            entry = self.log[at][1]
            if isinstance(entry, tuple) and entry[0] in ("summary", "rounds"):
                break
            count += at in self.rejections
            at = self.log[at][0]
        return count

    # What happens between turns

    def choose_endpoint(self) -> Endpoint:
        pick = self.chance.choice
        account, system = pick(["key1", "key1", "key2"]), pick(["s", "s", "t"])
        return Endpoint(pick("ABC"), pick(WINDOWS), account, system)

    def import_history(self) -> None:
        messages = self.maker.conversation(has_unfinished=True)
        for message in messages:
            self.add(message, message.seq)
            if message.kind == "prompt":
                self.prompts.append(self.tip)
        view = replay_entries(messages)
        binding = self.endpoint.binding
        self.seals.sign(self.checker.read(view), binding)
        self.makers["c2ln"] = self.endpoint.model
        for message in messages:
            if message.kind == "answer":
                self.calls[message.seq] = Call(self.endpoint.model, binding, None)

    def something_happens(self) -> None:
        chance = self.chance.random()
        is_stuck = self.tip not in self.ends
        if (chance < 0.15 or is_stuck) and self.ends:
            self.counts["undo"] += 1
            self.tip = self.chance.choice(self.ends)
        elif chance < 0.3 and self.prompts:
            self.counts["regenerate"] += 1
            self.tip = self.chance.choice(self.prompts)
            return
        elif chance < 0.45:
            self.bring_back()
        if self.chance.random() < 0.25:
            self.counts["switch"] += 1
            self.endpoint = self.choose_endpoint()
        if self.chance.random() < 0.2:
            self.policy = policy_from_seed(self.chance.randrange(2**40))
        if self.chance.random() < 0.2:
            self.pin()
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            message = self.maker.prompt()
            self.add(message, message.seq)
        self.prompts.append(self.tip)

    def pin(self) -> None:
        messages = [entry for _, entry in self.path() if isinstance(entry, Message)]
        chosen: set[str | int] = set()
        for message in self.chance.sample(messages, min(2, len(messages))):
            ids = [result.id for result in message.shape.results]
            chosen.add(self.chance.choice([message.seq, *ids]))
        self.pins = frozenset(chosen)

    def bring_back(self) -> None:
        """Restore what is no longer in view as it was: an answer with its results, or a prompt."""
        view = self.load().view
        now = {message.seq: message for message in view.messages}
        path = [entry for _, entry in self.path() if isinstance(entry, Message)]
        lost = [at for at, message in enumerate(path) if now.get(message.seq) is not message]
        if not lost:
            return
        at = self.chance.choice(lost)
        originals = [path[at]]
        if path[at].shape.calls:
            originals += [one for one in path[at + 1 : at + 2] if one.kind == "results"]
        elif path[at].shape.results:
            originals.insert(0, path[at - 1])
        try:
            change = build_restore(view, *originals)
        except RuleError:
            return
        if change is not None:
            self.counts["restore"] += 1
            self.restored.update(message.seq for message in originals)
            self.record(change)
            self.checker.see_originals(self.load().view)

    # A turn

    def turn(self) -> None:
        state = self.load()
        left = self.chance.randint(1, _MOST_ROUNDS)
        while left > 0 or is_open(state.view):
            prepared, state = self.reply(state)
            if prepared is None:
                break
            left = 0 if self.chance.random() < 0.4 else left - 1
            state = self.answered(prepared, state, is_over=left <= 0)
            if state.view.messages[-1].shape.last == "text":
                break
        if not is_open(state.view):
            self.ends.append(self.tip)

    def reply(self, state: Loaded) -> tuple[Prepared | None, Loaded]:
        """Prepare; where the API finds it too long, again and harder, as the runner does."""
        refused = None
        for harder in range(OVERFLOWS + 1):
            prepared = self.prepare(state, harder)
            if prepared is None:
                return None, state
            state = replace(
                state,
                view=prepared.view,
                rejected=self._rejected(),
                compacted_by=self.maker_of(prepared.view),
            )
            if refused is None or prepared.view.edits != refused:
                self.checker.see_request(prepared, self.endpoint)
                self.sends(prepared.view)
                if self.chance.random() < 0.85:
                    return prepared, state
            self.counts["overflow"] += 1
            refused = prepared.view.edits
        return None, state

    def prepare(self, state: Loaded, harder: int) -> Prepared | None:
        vetoes = self.chance.sample(KINDS, 2) if self.chance.random() < 0.1 else ()
        if any(message.shape.compactions for message in state.view.messages):
            # A veto cannot keep a block that the model does not take, only end the turn.
            vetoes = [kind for kind in vetoes if kind != "summary"]
        shell = Shell(
            writer_from_seed(self.chance.randrange(2**40)), tuple(vetoes), self.some_count(),
            self.compaction,
        )  # fmt: skip
        known = self.situation(state)
        self.counts["prepare"] += 1
        try:
            prepared = shell.prepare(state.view, known, self.policy, harder=harder)
        except WindowError:
            self.counts["window error"] += 1
            self.keep(shell.records)
            return None
        self.keep(shell.records)
        self.checker.see_changes(state.view, prepared, shell, self.policy, known, harder)
        return prepared

    def some_count(self) -> Callable[[View], int | None]:
        """Count as the API would, more or less, or not at all."""
        share = self.chance.choice([None, 60, 100, 250])
        return lambda view: None if share is None else (view.tokens + 100) * share // 100

    def compaction(self, wanted: CompactionWanted) -> CompactionReply | None:
        """Compact as the API does, or fail in one of its ways."""
        self.checker.see_compaction(wanted.view, self.endpoint)
        self.counts["compaction call"] += 1
        kind = self.chance.random()
        if kind < 0.1:
            return None
        if kind < 0.15:
            return CompactionReply("", "max_tokens")
        name = f"seal {self.maker.call_id('block')} {'of a compaction ' * 4}"
        self.makers[name] = self.endpoint.model
        said = self.maker.words(60 if kind < 0.9 else 3 * wanted.view.size)
        block = {"type": "compaction", "content": said, "signature": name}
        return CompactionReply(wire.encode(block), "compaction")

    def keep(self, records: list[Transformation]) -> None:
        for record in records:
            self.counts[f"{record.kind} {record.outcome}"] += 1
            self.checker.see_record(record)
            self.record(record)

    def record(self, change: Transformation) -> None:
        if change.outcome == "applied":
            self.add((change.kind, edits.load_edits(edits.dump_edits(change.edits))))
            return
        self.add(Expected(change.view_after.cleared) if change.outcome == "expected" else None)
        if change.kind in ("summary", "rounds"):
            self.rejections.add(self.tip)

    def situation(self, state: Loaded) -> Situation:
        pick = self.chance.choice
        return Situation(
            self.endpoint.model, self.endpoint.window, 100, state.report, state.bound_to,
            self.endpoint.binding, state.rejected,
            rates=pick([None, RATES, RATES, replace(RATES, cliff=3_000)]),
            cache_age=pick([None, 10, 400]), pins=self.pins, clears=self.endpoint.clears,
            compacts=self.endpoint.compacts, compacted_by=state.compacted_by,
        )  # fmt: skip

    def answered(self, prepared: Prepared, state: Loaded, *, is_over: bool) -> Loaded:
        """Store what the API answers, and the results of what it calls."""
        view, binding = prepared.view, self.endpoint.binding
        last = view.messages[-1]
        if last.kind == "answer":
            said = [self.maker.resumed(last)]
        elif is_over:
            said = [self.maker.answer()]
        elif self.chance.random() < 0.08:
            said = [self.maker.paused()]
        else:
            said = self.maker.round()
            self._one_answer(said)
        answer = said[0]
        request = self.checker.read(view.append(answer))
        self.seals.sign(request, binding)
        report = self._report(view.append(answer))
        self.add(answer, answer.seq)
        self.calls[answer.seq] = Call(self.endpoint.model, binding, report)
        for message in said[1:]:
            self.add(message, message.seq)
        return replace(
            state, view=replay_entries(said, view), report=report or state.report, bound_to=binding
        )

    def _one_answer(self, said: list[Message]) -> None:
        """Make one message of neighbouring answers: a call has one."""
        while said[1].kind == "answer":
            blocks = (*said[0].blocks, *said.pop(1).blocks)
            said[0] = Message.of(said[0].seq, "answer", blocks)

    def _report(self, view: View) -> Report | None:
        share = self.chance.choice([None, 50, 100, 130, 130, 400])
        if share is None:
            return None
        return Report((view.tokens + 100) * share // 100, view.tokens, 100, view.edits)


def live(seed: int) -> Counter[str]:
    """Live the story of a seed; what breaks says which seed it was."""
    try:
        return Story(seed).live()
    except Exception as error:
        error.add_note(f"story {seed}")
        raise
