"""Members of one group, each a process; what all of them noted is one history."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ottla.testing.history import Event, Kind, Recorder, check, load
from tests.interop.feed import Feed
from tests.interop.topics import eventually
from tests.interop.wire import Wire

PROJECT = Path(__file__).resolve().parents[2]
SECONDS = 30.0


class Member:
    """A process that runs `tests.interop.member`, or another program that notes a history."""

    def __init__(self, name: str, home: Path, module: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.history = home / f"{name}.jsonl"
        self.errors = home / f"{name}.stderr"
        self.history.touch()
        given = json.dumps({"name": name, "history": str(self.history), **options})
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, given], cwd=PROJECT, stdout=errors, stderr=errors
            )

    def events(self) -> list[Event]:
        assert self.process.poll() in (None, 0, -signal.SIGKILL), self.errors.read_text()[-3000:]
        return load(self.history)

    def owned(self) -> set[str]:
        found: set[str] = set()
        for event in self.events():
            if event.function == "assigned":
                found |= set(event.values["partitions"])
            elif event.function in ("revoked", "lost"):
                found -= set(event.values["partitions"])
        return found

    def polled(self) -> set[str]:
        """Every value it has seen."""
        return {
            value
            for event in self.events()
            if event.function == "poll"
            for _, _, value in event.values["records"]
        }

    def count(self, function: str, type: str = "ok") -> int:
        return sum((event.function, event.type) == (function, type) for event in self.events())

    def leave(self) -> None:
        """Returns when it has left the group and ended."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(SECONDS)
        assert code == 0, self.errors.read_text()[-3000:]

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def commit(self) -> None:
        """Makes it commit what it has polled, once; for one that does not after every poll."""
        self.process.send_signal(signal.SIGUSR1)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Crew:
    """`with Crew(tmp_path, bootstrap, "group", ["topic"]) as crew: a = crew.member("a")`."""

    def __init__(self, home: Path, bootstrap: str, group: str, topics: Iterable[str], **options: Any) -> None:
        self.home = home
        self.bootstrap = bootstrap
        self.group = group
        self.recorder = Recorder("test")
        self.members: list[Member] = []
        self._options = {"bootstrap": bootstrap, "group": group, "topics": list(topics), **options}

    def member(self, name: str, *, module: str = "tests.interop.member", **options: Any) -> Member:
        member = Member(name, self.home, module, {**self._options, **options})
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        """A crash: nothing is committed, nobody is told."""
        member.process.kill()
        member.process.wait()
        self.recorder.crashed(member.name)

    def settles(self, shares: Mapping[Member, int]) -> None:
        """Waits until these members own that many partitions each, and none of them twice."""

        def settled() -> bool:
            owned = {member: member.owned() for member in shares}
            sizes = {member: len(partitions) for member, partitions in owned.items()}
            return sizes == shares and len(set().union(*owned.values())) == sum(sizes.values())

        try:
            eventually(settled)
        except AssertionError as error:
            now = {member.name: sorted(member.owned()) for member in shares}
            raise AssertionError(f"the group does not settle: {now}") from error

    def has_polled(self, values: Iterable[str]) -> None:
        """Waits until each of these values has been seen by somebody."""
        wanted = set(values)

        def seen() -> bool:
            wanted.difference_update(*(member.polled() for member in self.members))
            return not wanted

        try:
            eventually(seen)
        except AssertionError as error:
            raise AssertionError(f"{len(wanted)} values are not seen, {sorted(wanted)[:5]}...") from error

    def finishes(self, feed: Feed) -> None:
        """Waits until all that was fed is read and committed, lets all leave, and checks the history."""
        self.has_polled(feed.values)

        def is_committed() -> bool:
            found = fetch_offsets(self.recorder, self.bootstrap, self.group, feed.names())
            return sum(offset or 0 for offset in found.values()) == len(feed.values)

        eventually(is_committed)
        for member in self.members:
            if member.process.poll() is None:
                member.leave()
        self.check(feed.recorder)

    def history(self, *others: Recorder) -> list[Event]:
        events = load(*(member.history for member in self.members))
        for recorder in (self.recorder, *others):
            events += recorder.events
        return events

    def check(self, *others: Recorder, allow: Iterable[Kind] = ()) -> None:
        """Nothing is wrong with what everybody noted, at the end of a test in which all records were read."""
        anomalies = check(self.history(*others), drained=True, allow=set(allow))
        assert not anomalies, "\n".join(map(str, anomalies[:10]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            member.end()


def fetch_offsets(
    recorder: Recorder, bootstrap: str, group: str, partitions: Iterable[str], *, stable: bool = False
) -> dict[str, int | None]:
    """The committed offsets, as the coordinator has them."""
    topics: dict[str, list[int]] = {}
    for name in partitions:
        topic, _, partition = name.rpartition("-")
        topics.setdefault(topic, []).append(int(partition))
    operation = recorder.fetch_offsets(group, stable=stable)
    found: dict[str, int | None] = {}

    def fetched() -> bool:
        with Wire(bootstrap) as wire:
            asked = [{"name": topic, "partition_indexes": indexes} for topic, indexes in topics.items()]
            (answer,) = wire.ask(
                "offset_fetch",
                8,
                groups=[{"group_id": group, "topics": asked}],
                require_stable=stable,
            ).groups
        if answer.error_code != 0:
            assert answer.error_code in (14, 15, 16), answer
            return False
        for topic in answer.topics:
            for at in topic.partitions:
                if at.error_code != 0:
                    assert at.error_code == 88, answer
                    return False
                offset = None if at.committed_offset == -1 else at.committed_offset
                found[f"{topic.name}-{at.partition_index}"] = offset
        return True

    eventually(fetched)
    operation.ok(offsets=found)
    return found
