"""Histories: what clients of a broker did and saw, and what in it must not be.

Clients note every operation (`recorder`), one line of JSON per event (`events`): `invoke` when it starts,
then `ok` if it happened, `fail` if it certainly did not, `info` if nobody knows. An operation that never
ended is as good as `info`: its process may have been killed. Events become typed operations (`operations`),
which the checkers read: `records` (what was sent and polled), `transactions`, `ownership` (who had which
partition) and `commits` (of offsets). Every value that is sent is unique, and offsets say what is newer, so
no checker searches: they take time linear in the history, but for sorting.

    anomalies = check(history, drained=True, allow={Kind.DUPLICATE})

What is an anomaly depends on the client: the docstring of each kind says when it is allowed.
"""

from ottla.testing.history.anomalies import Anomaly, Kind
from ottla.testing.history.check import check
from ottla.testing.history.events import Event, load
from ottla.testing.history.recorder import Operation, Recorder

__all__ = ["Anomaly", "Event", "Kind", "Operation", "Recorder", "check", "load"]
