"""Transactions: nothing of an aborted one is seen, nothing before its time, and all or nothing of each."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.testing.history.anomalies import Anomaly, Kind
from ottla.testing.history.operations import Operations, Outcome, Send, Value
from ottla.testing.history.outcomes import Fate, Transactions


def check_transactions(
    operations: Operations, transactions: Transactions, *, drained: bool
) -> Iterator[Anomaly]:
    yield from _seen_too_soon_or_at_all(operations, transactions)
    if drained:
        yield from _torn(transactions)


def _seen_too_soon_or_at_all(operations: Operations, transactions: Transactions) -> Iterator[Anomaly]:
    sends: dict[tuple[str, Value], Send] = {(send.partition, send.value): send for send in operations.sends}
    for poll in operations.polls:
        for partition, offset, value in poll.records:
            send = sends.get((partition, value))
            if send is None:
                continue
            seen = f"{poll.process} saw {value!r} at {offset} of {partition}"
            if send.outcome is Outcome.FAIL:
                yield Anomaly(Kind.ABORTED_READ, f"{seen}, but {send.process} failed to send it")
            if send.transaction is None or not poll.committed:
                continue
            fate = transactions.fates[send.transaction]
            if fate is Fate.ABORTED:
                yield Anomaly(Kind.ABORTED_READ, f"{seen} of {send.transaction}, which was aborted")
            elif poll.at < transactions.commit_began.get(send.transaction, poll.at + 1):
                yield Anomaly(Kind.PRECOMMITTED_READ, f"{seen} of {send.transaction}, which was still open")


def _torn(transactions: Transactions) -> Iterator[Anomaly]:
    """In a history that read every log to its end, a transaction is there or it is not."""
    for transaction, sends in transactions.sends.items():
        if transactions.fates[transaction] is not Fate.COMMITTED:
            continue  # seeing anything of it is an aborted read
        missing = [send for send in sends if send.outcome is Outcome.OK and not transactions.was_seen(send)]
        if missing and len(missing) < len(sends):
            text = ", ".join(f"{send.value!r} of {send.partition}" for send in missing[:5])
            yield Anomaly(
                Kind.TORN_TRANSACTION,
                f"{transaction} is seen, but {len(missing)} of its records are not: {text}",
            )
