"""All checkers over one history."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ottla.testing.history.anomalies import Anomaly, Kind
from ottla.testing.history.commits import check_commits
from ottla.testing.history.events import Event, merge
from ottla.testing.history.operations import operations
from ottla.testing.history.outcomes import Transactions
from ottla.testing.history.ownership import check_ownership
from ottla.testing.history.records import check_records
from ottla.testing.history.transactions import check_transactions


def check(events: Iterable[Event], *, drained: bool = False, allow: Collection[Kind] = ()) -> list[Anomaly]:
    """What is wrong with the history; empty if nothing is.

    `drained` says that every partition was read to its end after everything had come to rest (by a consumer
    of read_committed, where there were transactions), so that what nobody saw is not there.
    """
    found = operations(merge(events))
    transactions = Transactions(found, drained=drained)
    anomalies = [
        *check_records(found, transactions, drained=drained),
        *check_transactions(found, transactions, drained=drained),
        *check_ownership(found),
        *check_commits(found, transactions),
    ]
    return [anomaly for anomaly in anomalies if anomaly.kind not in allow]
