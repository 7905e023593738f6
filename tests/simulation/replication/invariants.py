"""What must hold after every event, whatever went wrong (I1, I2, I13, I14, I16, I17, I19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.metadata.partition import PartitionState
from tests.simulation.replication.log import Batch, SimulatedLog

if TYPE_CHECKING:
    from tests.simulation.replication.cluster import Process


class Violation(AssertionError):
    """Something happened that must not."""


class Invariants:
    def __init__(self, min_insync_replicas: int, replication_factor: int, durable: bool) -> None:
        self._min_isr = min(min_insync_replicas, replication_factor)
        self._durable = durable
        # Every batch that was ever below a leader's high watermark (durable: and synced there).
        self.committed: list[Batch] = []
        self.committed_end = 0
        self.start_offset = 0
        self.acknowledged: dict[int, int] = {}  # value to the offset that the client was told
        self.seen_watermark = 0
        self._watermarks: dict[tuple[int, int], int] = {}

    def check(self, processes: list[Process], state: PartitionState, epochs: dict[int, int]) -> None:
        for process in processes:
            if process.partition.is_leader:
                self._take_leader(process)
        for process in processes:
            # A broker that the controller has not registered anew yet may be in its sets, and not be it.
            is_registered = process.broker_epoch >= 0 and epochs.get(process.id) == process.broker_epoch
            if is_registered and (process.id in state.isr or process.id in state.elr):
                self._check_complete(process, state)

    def _take_leader(self, process: Process) -> None:
        partition = process.partition
        log: SimulatedLog = process.disk
        watermark = log.high_watermark
        key = (process.incarnation, partition.leader_epoch)
        before = self._watermarks.get(key)
        self._watermarks[key] = watermark
        if before is None:
            return  # it has not committed anything yet as this leader
        if watermark < before:
            raise Violation(
                f"I13: the high watermark of leader {process.id} went from {before} to {watermark}"
            )
        if watermark > before and len(process.members_before) < self._min_isr:
            raise Violation(f"I14: leader {process.id} moved its watermark with {process.members_before}")
        safe = min(watermark, log.recovery_point) if self._durable else watermark
        self.start_offset = max(self.start_offset, log.start_offset)
        for batch in log.batches[log._position(min(before, self.committed_end)) :]:
            if batch.last_offset >= safe:
                break
            if batch.base_offset >= self.committed_end:
                self.committed.append(batch)
                self.committed_end = batch.last_offset + 1
            else:
                self._compare(batch, process)

    def _compare(self, batch: Batch, process: Process) -> None:
        known = self._committed_at(batch.base_offset)
        if known is not None and known.bytes != batch.bytes:
            raise Violation(f"I2: {process.id} has {batch[:4]} where {known[:4]} was committed")

    def _committed_at(self, offset: int) -> Batch | None:
        low, high = 0, len(self.committed)
        while low < high:
            middle = (low + high) // 2
            if self.committed[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return self.committed[low] if low < len(self.committed) else None

    def _check_complete(self, process: Process, state: PartitionState) -> None:
        log: SimulatedLog = process.disk
        if log.end_offset < self.committed_end:
            raise Violation(
                f"I16: {process.id} has up to {log.end_offset} of {self.committed_end}; "
                f"isr={state.isr} elr={state.elr} leader={state.leader}"
            )
        if process.checked_up_to > log.end_offset:
            process.checked_up_to = 0
        for batch in reversed(self.committed):
            if batch.last_offset < max(process.checked_up_to, self.start_offset):
                break
            held = log.value_at(batch.last_offset)
            if held != batch.bytes and batch.base_offset >= log.start_offset:
                raise Violation(f"I17: {process.id} lacks {batch[:4]}, which is committed")
        process.checked_up_to = self.committed_end

    def check_unclean(self, broker: int, state: PartitionState) -> None:
        if broker in state.isr or broker in state.elr:
            raise Violation(f"I19: {broker} came back uncleanly and is in {state.isr} or {state.elr}")

    def acknowledge(self, value: int, offset: int) -> None:
        self.acknowledged[value] = offset

    def see_watermark(self, offset: int, start: int) -> None:
        if offset < self.seen_watermark:
            raise Violation(f"I13: a client was told {offset} after {self.seen_watermark}")
        self.seen_watermark = offset

    def see_record(self, batch: Batch) -> None:
        """A consumer was given this."""
        known = self._committed_at(batch.base_offset)
        if known is not None and known.bytes != batch.bytes and batch.base_offset >= self.start_offset:
            raise Violation(f"I2: a consumer read {batch[:4]} where {known[:4]} was committed")

    def check_end(self, leader: SimulatedLog, others: list[SimulatedLog]) -> None:
        """After everything was mended: nothing that was acknowledged is gone, and all have the same."""
        for value, offset in self.acknowledged.items():
            if offset < leader.start_offset:
                continue
            held = leader.value_at(offset)
            if held is None or int.from_bytes(held[27:35], "big") != value:
                raise Violation(f"I1: value {value} at {offset} was acknowledged and is lost")
        for log in others:
            start = max(leader.start_offset, log.start_offset)
            mine = [batch.bytes for batch in leader.batches if batch.base_offset >= start]
            theirs = [batch.bytes for batch in log.batches if batch.base_offset >= start]
            if mine != theirs:
                raise Violation("I17: two in-sync replicas differ")
