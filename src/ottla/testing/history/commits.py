"""Committed offsets: none is lost, none comes back, and none is taken from who no longer may commit."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.testing.history.anomalies import Anomaly, Kind
from ottla.testing.history.operations import NEVER, Commit, FetchOffsets, Operations, Outcome, Owning
from ottla.testing.history.outcomes import Fate, Transactions


def check_commits(operations: Operations, transactions: Transactions) -> Iterator[Anomaly]:
    yield from _taken_from_the_fenced(operations)
    registers: dict[tuple[str, str], Register] = defaultdict(Register)
    for commit in operations.commits:
        for write in _writes(commit, transactions):
            registers[commit.group, write.partition].add(write)
    for fetch in operations.fetches:
        for partition in fetch.offsets:
            registers[fetch.group, partition].fetches.append(fetch)
    for (group, partition), register in registers.items():
        for kind, text in register.check(partition):
            yield Anomaly(kind, f"{partition} of {group}: {text}")


# --- what is found -----------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Write:
    """An offset on its way to being the committed one, at some time between `began` and `ended`."""

    commit: Commit
    partition: str
    offset: int
    began: int
    ended: int
    outcome: Outcome


def _writes(commit: Commit, transactions: Transactions) -> Iterator[Write]:
    began, ended, outcome = commit.began, commit.ended, commit.outcome
    if commit.transaction is not None and outcome is not Outcome.FAIL:
        # It becomes real with its transaction.
        began = transactions.commit_began.get(commit.transaction, NEVER)
        ended = transactions.commit_ended.get(commit.transaction, NEVER)
        fate = transactions.fates[commit.transaction]
        if fate is Fate.ABORTED or fate is Fate.OPEN:
            outcome = Outcome.FAIL
        elif fate is Fate.UNKNOWN or ended == NEVER:
            outcome = Outcome.INFO
    for partition, offset in commit.offsets.items():
        yield Write(commit, partition, offset, began, ended, outcome)


class Candidates:
    """Every offset that may be the committed one, as time goes by."""

    def __init__(self) -> None:
        self.begun: list[Write] = []
        self._nothing_yet = True
        self._may_be: dict[Write, None] = {}
        self._done: deque[Write] = deque()  # of these, those that are acknowledged, in that order
        self._unknown: list[Write] = []  # of these, those that may come at any time
        self._generation = -1

    def begin(self, write: Write) -> None:
        self.begun.append(write)
        self._may_be[write] = None
        if write.outcome is Outcome.INFO:
            self._unknown.append(write)

    def acknowledge(self, write: Write) -> None:
        """From now on it is this one, or one that overlapped it, or one that nobody knows of."""
        self._nothing_yet = False
        while self._done and self._done[0].ended < write.began:
            del self._may_be[self._done.popleft()]
        self._done.append(write)
        generation = write.commit.generation
        if generation is not None and generation > self._generation:
            # What nobody knows of will not come any more once a newer generation has committed.
            self._generation = generation
            for late in self._unknown:
                if late.commit.generation is not None and late.commit.generation < generation:
                    del self._may_be[late]
            self._unknown = [late for late in self._unknown if late in self._may_be]

    def offsets(self) -> set[int | None]:
        found: set[int | None] = {write.offset for write in self._may_be}
        return found | {None} if self._nothing_yet else found


class Step(IntEnum):
    BEGIN, END, LOOK, FOUND = range(4)


@dataclass(slots=True)
class Register:
    """The committed offset of one partition: what was written to it, and what was found."""

    writes: list[Write] = field(default_factory=list)
    fetches: list[FetchOffsets] = field(default_factory=list)
    transactional: bool = False

    def add(self, write: Write) -> None:
        self.writes.append(write)
        self.transactional |= write.commit.transaction is not None

    def check(self, partition: str) -> Iterator[tuple[Kind, str]]:
        """Plays the history again, with the offsets that could be found at each moment."""
        candidates = Candidates()
        looking: dict[int, tuple[set[int | None], int]] = {}
        for _, step, what in self._steps():
            if isinstance(what, Write):
                if step is Step.BEGIN:
                    candidates.begin(what)
                else:
                    candidates.acknowledge(what)
            elif step is Step.LOOK:
                looking[what.began] = (candidates.offsets(), len(candidates.begun))
            else:
                could, since = looking.pop(what.began)
                could |= {write.offset for write in candidates.begun[since:]}
                found = what.offsets[partition]
                if found not in could:
                    yield self._explain(found, could, candidates.begun, what)

    def _steps(self) -> list[tuple[int, Step, Write | FetchOffsets]]:
        steps: list[tuple[int, Step, Write | FetchOffsets]] = []
        for write in self.writes:
            if write.outcome is not Outcome.FAIL:
                steps.append((write.began, Step.BEGIN, write))
            if write.outcome is Outcome.OK:
                steps.append((write.ended, Step.END, write))
        for fetch in self.fetches:
            # While a transaction is being ended, only who asks for stable offsets is promised anything.
            if fetch.stable or not self.transactional:
                steps += [(fetch.began, Step.LOOK, fetch), (fetch.ended, Step.FOUND, fetch)]
        return sorted(steps, key=lambda step: step[:2])

    def _explain(
        self, found: int | None, could: set[int | None], begun: list[Write], fetch: FetchOffsets
    ) -> tuple[Kind, str]:
        expected = " or ".join(sorted(str(offset) for offset in could))
        text = f"{fetch.process} found {found}, not {expected}"
        if found is None:
            return Kind.LOST_COMMIT, text
        for write in self.writes:
            if write.outcome is Outcome.FAIL and write.offset == found and write.commit.began < fetch.ended:
                if write.commit.transaction is not None and write.commit.outcome is not Outcome.FAIL:
                    return (
                        Kind.TORN_TRANSACTION,
                        f"{text}: the offset of {write.commit.transaction}, which was not committed",
                    )
                return Kind.PHANTOM_COMMIT, f"{text}: the commit of {write.commit.member}, which failed"
        if any(write.offset == found for write in begun):
            return Kind.REGRESSED_COMMIT, text
        return Kind.PHANTOM_COMMIT, f"{text}: nobody had committed that"


# --- who may -----------------------------------------------------------------------------


def _taken_from_the_fenced(operations: Operations) -> Iterator[Anomaly]:
    generations: dict[str, int] = {}  # the newest of each group that a member has heard of
    owners: dict[tuple[str, str], str] = {}
    owned: set[tuple[str, str, str]] = set()
    moves: list[tuple[int, Owning | Commit]] = [
        *((owning.at, owning) for owning in operations.ownings if owning.what == "assigned"),
        *((commit.began, commit) for commit in operations.commits if commit.outcome is Outcome.OK),
    ]
    for _, what in sorted(moves, key=lambda move: move[0]):
        newest = generations.get(what.group, -1)
        if not isinstance(what, Commit):
            for partition in what.partitions:
                owners[what.group, partition] = what.member
                owned.add((what.group, partition, what.member))
            if what.generation is not None:
                generations[what.group] = max(newest, what.generation)
            continue
        if what.generation is not None and what.generation < newest:
            yield Anomaly(
                Kind.FENCED_COMMIT,
                f"{what.group} took a commit of {what.member} in generation {what.generation}, "
                f"after {newest} had begun",
            )
            continue
        for partition in what.offsets:
            owner = owners.get((what.group, partition), what.member)
            if owner != what.member and (what.group, partition, what.member) in owned:
                yield Anomaly(
                    Kind.FENCED_COMMIT,
                    f"{what.group} took a commit of {what.member} for {partition}, which {owner} had got",
                )
