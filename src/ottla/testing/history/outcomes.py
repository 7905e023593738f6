"""What became of every transaction, as far as the history tells."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

from ottla.testing.history.operations import NEVER, Operations, Outcome, Send, Value


class Fate(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"  # nobody tried to end it; it will be aborted when its time is up
    UNKNOWN = "unknown"  # somebody tried to commit it, and does not know


class Transactions:
    """The fate of each transaction, and of the sends within it."""

    def __init__(self, operations: Operations, *, drained: bool) -> None:
        self.fates: dict[str, Fate] = {}
        self.sends: dict[str, list[Send]] = defaultdict(list)
        # When a commit was first asked for: nothing of the transaction may be seen before that.
        self.commit_began: dict[str, int] = {}
        self.commit_ended: dict[str, int] = {}
        self.seen: dict[str, set[Value]] = {}
        for send in operations.sends:
            if send.transaction is not None:
                self.sends[send.transaction].append(send)
                self.fates[send.transaction] = Fate.OPEN
        for commit in operations.commits:
            if commit.transaction is not None:
                self.fates[commit.transaction] = Fate.OPEN
        for end in operations.ends:
            if end.commit:
                self.commit_began.setdefault(end.transaction, end.began)
            fate = self._fate(self.fates.get(end.transaction, Fate.OPEN), end.commit, end.outcome)
            if fate is Fate.COMMITTED:
                self.commit_ended.setdefault(end.transaction, end.ended)
            self.fates[end.transaction] = fate
        for poll in operations.polls:
            if poll.committed:
                for partition, _, value in poll.records:
                    self.seen.setdefault(partition, set()).add(value)
        if drained:
            self._decide_by_what_was_seen()

    @staticmethod
    def _fate(before: Fate, commit: bool, outcome: Outcome) -> Fate:
        if outcome is Outcome.OK:
            return Fate.COMMITTED if commit else Fate.ABORTED
        if before in (Fate.COMMITTED, Fate.ABORTED):
            return before
        if commit:
            return Fate.UNKNOWN if outcome is Outcome.INFO else Fate.ABORTED
        return before

    def _decide_by_what_was_seen(self) -> None:
        """With every log read to its end, one that nobody knows of was committed if any of it is there."""
        for transaction, sends in self.sends.items():
            if self.fates[transaction] is Fate.UNKNOWN:
                acknowledged = [send for send in sends if send.outcome is Outcome.OK]
                if any(self.was_seen(send) for send in sends):
                    self.fates[transaction] = Fate.COMMITTED
                    self.commit_ended[transaction] = NEVER
                elif acknowledged:
                    self.fates[transaction] = Fate.ABORTED

    def was_seen(self, send: Send) -> bool:
        """By a consumer of read_committed."""
        return send.value in self.seen.get(send.partition, ())

    def is_visible(self, send: Send) -> bool:
        """Whether consumers of read_committed are to see it."""
        return send.transaction is None or self.fates[send.transaction] is Fate.COMMITTED
