"""What must hold after every event, whatever happens to the nodes and the network between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.raft.machine import Role
from tests.simulation.raft.log import Batch

if TYPE_CHECKING:
    from tests.simulation.raft.cluster import Node


class Violation(Exception):
    """Something that must never happen has happened."""


class Invariants:
    """Sees everything at once, as nobody in the cluster can."""

    def __init__(self) -> None:
        self.committed: list[Batch] = []
        # The batch that is committed at each offset where one ends.
        self._by_end: dict[int, Batch] = {}
        self._leaders: dict[int, tuple[int, int]] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._epochs: dict[int, int] = {}
        self._chains: dict[tuple[int, int], int] = {}
        self.elections = 0

    @property
    def committed_end(self) -> int:
        return self.committed[-1].end_offset if self.committed else 0

    def check(self, node: Node, voters: list[Node]) -> None:
        """After an event at this node."""
        raft, log = node.machine, node.log
        if raft.epoch < self._epochs.get(node.id, 0):
            raise Violation(f"node {node.id} went back to epoch {raft.epoch}")
        self._epochs[node.id] = raft.epoch
        if raft.is_leader:
            self._check_leader(node)
        self._check_log(node)
        mark = raft.high_watermark
        if mark is not None and mark != node.seen_mark:
            if mark < node.seen_mark:
                raise Violation(f"the high watermark of node {node.id} went back to {mark}")
            if mark > log.end_offset:
                raise Violation(f"node {node.id} has a high watermark of {mark} beyond its log")
            self._check_commit(node, mark, voters)
            node.seen_mark = mark

    def voted(self, node: int, epoch: int, candidate: int) -> None:
        """A vote has left a node."""
        if self._votes.setdefault((node, epoch), candidate) != candidate:
            raise Violation(f"node {node} voted twice in epoch {epoch}")

    def acknowledged(self, offset: int, value: int) -> None:
        """A client was told that its record is committed."""
        if not any(batch.base_offset == offset and batch.value == value for batch in self.committed):
            raise Violation(f"the record at {offset} was acknowledged and is not committed")

    def _check_leader(self, node: Node) -> None:
        """One leader in an epoch, which has everything that was ever committed."""
        epoch = node.machine.epoch
        life = (node.id, node.life)
        if epoch in self._leaders:
            if self._leaders[epoch] != life:
                raise Violation(f"{life} and {self._leaders[epoch]} both led epoch {epoch}")
            return
        self._leaders[epoch] = life
        self.elections += 1
        if self.committed and not node.log.has(self.committed[-1]):
            raise Violation(f"node {node.id} leads epoch {epoch} without all that is committed")

    def _check_log(self, node: Node) -> None:
        """Two logs that agree on an offset and its epoch agree on all that is before it."""
        log = node.log
        for batch in log.batches[max(0, node.seen_batches - 1) :]:
            key = (batch.end_offset, batch.epoch)
            if self._chains.setdefault(key, batch.chain) != batch.chain:
                raise Violation(f"node {node.id} has another past before offset {batch.end_offset}")
        node.seen_batches = len(log.batches)

    def _check_commit(self, node: Node, mark: int, voters: list[Node]) -> None:
        """Committed is what a majority has on disk, and it never changes."""
        log = node.log
        for batch in log.batches:
            if batch.base_offset >= self.committed_end and batch.end_offset <= mark:
                if batch.base_offset != self.committed_end:
                    raise Violation(f"node {node.id} commits {batch} after {self.committed_end}")
                self.committed.append(batch)
                self._by_end[batch.end_offset] = batch
        last = self._by_end.get(mark)
        if last is None:
            raise Violation(f"node {node.id} commits up to {mark}, where nothing ends")
        if not log.has(last):
            raise Violation(f"node {node.id} has something else committed before {mark}")
        snapshot = log.latest_snapshot
        if node.machine.role is Role.LEADER and (snapshot is None or mark > snapshot.end_offset):
            # Without this it takes some thousand seeds until such a record is overwritten and missed.
            if last.epoch != node.machine.epoch:
                raise Violation(f"node {node.id} commits up to {mark} without a record of its own epoch")
            having = [voter for voter in voters if voter.log.has_durable(last)]
            if len(having) <= len(voters) // 2:
                raise Violation(
                    f"node {node.id} commits up to {mark}, "
                    f"which only {len(having)} of {len(voters)} have on disk"
                )
