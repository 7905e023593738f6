"""Somebody who keeps asking every node what it knows, and notes what cannot be (I12, I13)."""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import Self

from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.testing import cluster_state
from ottla.testing.asking import ask
from ottla.testing.cluster import TestCluster

LIST_OFFSETS = 2
LATEST = -1
PAUSE_SECONDS = 0.3


class Watch:
    """One leader for every epoch of a partition and of the quorum, and an end that never goes back."""

    def __init__(self, cluster: TestCluster, topic: str, partitions: int) -> None:
        self.problems: list[str] = []
        self.epochs = 0
        """How many times the quorum had a new leader."""
        self._cluster, self._topic, self._partitions = cluster, topic, partitions
        self._leaders: dict[tuple[str, int], int] = {}
        self._controllers: dict[int, int] = {}
        self._ends: dict[int, tuple[int, int]] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._done.wait(PAUSE_SECONDS):
            for node in self._cluster.running:
                # One that is going down, or is cut off, says nothing.
                with contextlib.suppress(OSError, EOFError):
                    self._look(node.bootstrap)

    def _look(self, bootstrap: str) -> None:
        state = cluster_state.state(bootstrap)
        for name, partition in state.partitions.items():
            if partition.leader >= 0:
                known = self._leaders.setdefault((name, partition.leader_epoch), partition.leader)
                if known != partition.leader:
                    text = (
                        f"{name} has leaders {known} and {partition.leader} in epoch {partition.leader_epoch}"
                    )
                    self.problems.append(text)
        quorum = cluster_state.quorum(bootstrap)
        if quorum.leader >= 0:
            known = self._controllers.setdefault(quorum.epoch, quorum.leader)
            self.epochs = len(self._controllers)
            if known != quorum.leader:
                self.problems.append(f"epoch {quorum.epoch} has controllers {known} and {quorum.leader}")
        for number in range(self._partitions):
            leader = state.partitions[f"{self._topic}-{number}"].leader
            if leader >= 0 and self._cluster.node(leader).bootstrap == bootstrap:
                self._look_at_end(bootstrap, number)

    def _look_at_end(self, bootstrap: str, number: int) -> None:
        partition = ListOffsetsPartition(partition_index=number, timestamp=LATEST)
        topic = ListOffsetsTopic(name=self._topic, partitions=[partition])
        answer = ask(
            bootstrap, LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=[topic]), timeout=2.0
        )
        (found,) = answer.topics[0].partitions
        if found.error_code != 0:
            return
        # One that is cut off goes on believing that it leads, and names the end that it knows: clients tell
        # by the epoch that it is old. Who leads in a newer epoch must not name an earlier end.
        epoch, before = self._ends.get(number, (-1, -1))
        if found.leader_epoch < epoch:
            return
        if found.offset < before:
            name = f"{self._topic}-{number}"
            self.problems.append(f"the end of {name} went from {before} to {found.offset}, epoch {epoch}")
        self._ends[number] = (found.leader_epoch, max(before, found.offset))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(30)
