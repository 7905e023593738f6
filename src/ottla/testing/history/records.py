"""What was sent and what was polled: nothing lost, doubled, moved, or passed over."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ottla.testing.history.anomalies import Anomaly, Kind
from ottla.testing.history.operations import Operations, Owning, Poll, Position, Send, Value
from ottla.testing.history.outcomes import Transactions

BEFORE_ANY: Final = -1


class Logs:
    """What is known of every partition from all that was sent and polled."""

    def __init__(self, operations: Operations, transactions: Transactions) -> None:
        self.value_at: dict[str, dict[int, Value]] = defaultdict(dict)
        self.offset_of: dict[str, dict[Value, int]] = defaultdict(dict)
        self.read: dict[str, set[Value]] = defaultdict(set)
        self.last_read: dict[str, int] = {}
        self.anomalies: list[Anomaly] = []
        # What a consumer of either isolation level certainly could see.
        visible: dict[tuple[str, bool], set[int]] = defaultdict(set)
        for send in operations.sends:
            if send.offset is not None:
                self._stands(send.partition, send.offset, send.value)
                visible[send.partition, False].add(send.offset)
                if transactions.is_visible(send):
                    visible[send.partition, True].add(send.offset)
        for poll in operations.polls:
            for partition, offset, value in poll.records:
                self._stands(partition, offset, value)
                self.read[partition].add(value)
                visible[partition, poll.committed].add(offset)
                if offset > self.last_read.get(partition, BEFORE_ANY):
                    self.last_read[partition] = offset
        self.visible = {key: sorted(offsets) for key, offsets in visible.items()}

    def _stands(self, partition: str, offset: int, value: Value) -> None:
        known = self.value_at[partition].setdefault(offset, value)
        if known != value:
            text = f"{partition} has {known!r} and {value!r} at {offset}"
            self.anomalies.append(Anomaly(Kind.INCONSISTENT_OFFSET, text))
        first = self.offset_of[partition].setdefault(value, offset)
        if first != offset:
            text = f"{partition} has {value!r} at {first} and at {offset}"
            self.anomalies.append(Anomaly(Kind.DUPLICATE, text))


def check_records(operations: Operations, transactions: Transactions, *, drained: bool) -> Iterator[Anomaly]:
    logs = Logs(operations, transactions)
    yield from logs.anomalies
    yield from _lost(operations, transactions, logs, drained)
    yield from _sent_out_of_order(operations.sends)
    yield from _polled_out_of_order(operations, logs.visible)


def _lost(operations: Operations, transactions: Transactions, logs: Logs, drained: bool) -> Iterator[Anomaly]:
    for send in operations.sends:
        if (
            send.offset is None
            or not transactions.is_visible(send)
            or send.value in logs.read[send.partition]
        ):
            continue
        last = logs.last_read.get(send.partition, BEFORE_ANY)
        text = f"{send.process} sent {send.value!r} to {send.partition}, acknowledged at {send.offset}"
        if send.offset <= last:
            yield Anomaly(Kind.LOST_WRITE, f"{text}; read up to {last}, but not that")
        elif drained:
            yield Anomaly(Kind.UNSEEN, f"{text}; nobody read it")


def _sent_out_of_order(sends: list[Send]) -> Iterator[Anomaly]:
    last: dict[tuple[str, str], Send] = {}
    for send in sends:
        if send.offset is None:
            continue
        before = last.get((send.process, send.partition))
        if before is not None and before.offset is not None and before.offset >= send.offset:
            yield Anomaly(
                Kind.NONMONOTONIC_SEND,
                f"{send.process} sent {before.value!r} and then {send.value!r} to {send.partition}: "
                f"they stand at {before.offset} and {send.offset}",
            )
        last[send.process, send.partition] = send


def _polled_out_of_order(
    operations: Operations, visible: Mapping[tuple[str, bool], Sequence[int]]
) -> Iterator[Anomaly]:
    # Where each consumer is in each partition: the last offset it has seen, or None if it may be anywhere.
    last: dict[tuple[str, str], int | None] = {}
    moves: list[Poll | Position | Owning] = [*operations.polls, *operations.positions, *operations.ownings]
    moves.sort(key=lambda move: move.at)
    for move in moves:
        if isinstance(move, Position):
            for partition, position in move.positions.items():
                last[move.process, partition] = None if position is None else position - 1
        elif not isinstance(move, Poll):
            for partition in move.partitions:
                last[move.process, partition] = None
        else:
            for partition, offset, value in move.records:
                before = last.get((move.process, partition))
                last[move.process, partition] = offset
                if before is None:
                    continue
                if offset <= before:
                    yield Anomaly(
                        Kind.NONMONOTONIC_POLL,
                        f"{move.process} was past {before} of {partition} and then saw {value!r} at {offset}",
                    )
                elif offset > before + 1:
                    offsets = visible[partition, move.committed]
                    between = bisect_left(offsets, offset) - bisect_right(offsets, before)
                    if between:
                        yield Anomaly(
                            Kind.POLL_SKIP,
                            f"{move.process} went from {before} to {offset} of {partition} "
                            f"past {between} records",
                        )
