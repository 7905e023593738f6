"""Share sessions (KIP-932): a member of a share group names its partitions once, then only says what changed.

A session belongs to a member and to the connection it was opened on. Pure: what is done with the records of
a session that ends is its owner's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from ottla.core.ids import Uuid
from ottla.protocol.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1

SharedPartition = tuple[Uuid, int]


class ShareSession:
    __slots__ = ("epoch", "group_id", "member_id", "owner", "partitions")

    def __init__(self, group_id: str, member_id: str, owner: object) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.owner = owner  # the connection
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[SharedPartition, None] = {}

    def advance(self, epoch: int) -> None:
        """A request has come with this epoch; the next has to have the next one."""
        if epoch != self.epoch:
            raise InvalidShareSessionEpoch
        self.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1

    def in_turn(self) -> list[SharedPartition]:
        """The partitions, each time beginning with another one."""
        partitions = list(self.partitions)
        if partitions:
            first = self.epoch % len(partitions)
            partitions = partitions[first:] + partitions[:first]
        return partitions


class ShareSessions:
    """The sessions on this broker, bounded in number."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._members: Counter[str] = Counter()  # of each group

    def __len__(self) -> int:
        return len(self._sessions)

    def has_members(self, group_id: str) -> bool:
        return self._members[group_id] > 0

    def fetch(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        *,
        partitions: Iterable[SharedPartition],
        forgotten: Iterable[SharedPartition],
        acknowledges: bool,
        owner: object,
    ) -> ShareSession:
        """The session of a ShareFetch, with its partitions as the request leaves them."""
        if epoch == FINAL_EPOCH:
            return self._get(group_id, member_id)
        if epoch == INITIAL_EPOCH:
            if acknowledges:
                raise InvalidRequest("A new share session has nothing to acknowledge.")
            session = self._open(group_id, member_id, owner)
        else:
            session = self._get(group_id, member_id)
        session.advance(epoch)
        session.partitions.update(dict.fromkeys(partitions))
        for partition in forgotten:
            session.partitions.pop(partition, None)
        return session

    def acknowledge(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a ShareAcknowledge, which cannot begin one."""
        if epoch == INITIAL_EPOCH:
            raise InvalidShareSessionEpoch
        session = self._get(group_id, member_id)
        if epoch != FINAL_EPOCH:
            session.advance(epoch)
        return session

    def end(self, group_id: str, member_id: str, owner: object | None = None) -> ShareSession | None:
        """Forget a session, if there is one and it belongs to the owner, if one is given."""
        session = self._sessions.get((group_id, member_id))
        if session is None or (owner is not None and session.owner is not owner):
            return None
        del self._sessions[group_id, member_id]
        self._members[group_id] -= 1
        if not self._members[group_id]:
            del self._members[group_id]
        return session

    def _get(self, group_id: str, member_id: str) -> ShareSession:
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise ShareSessionNotFound
        return session

    def _open(self, group_id: str, member_id: str, owner: object) -> ShareSession:
        self.end(group_id, member_id)
        if len(self._sessions) >= self._most():
            raise ShareSessionLimitReached
        session = self._sessions[group_id, member_id] = ShareSession(group_id, member_id, owner)
        self._members[group_id] += 1
        return session
