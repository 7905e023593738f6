"""Which replicas are in sync, and how far they agree. Pure: no clock, no disk, no loop."""

from __future__ import annotations

from collections.abc import Iterable


class InSyncReplicas:
    """A leader's view of how far each in-sync replica has come, and the high watermark that follows.

    The high watermark is the smallest end offset over the in-sync set, and it stands still while that set
    is smaller than `min_insync_replicas` (KIP-966): what too few replicas hold is not shown to anyone.
    """

    __slots__ = (
        "_ends",
        "is_large_enough",
        "is_leader_alone",
        "leader",
        "members",
        "min_insync_replicas",
        "replicas",
    )

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.replicas: tuple[int, ...] = (leader,)
        self.members: frozenset[int] = frozenset((leader,))
        self.min_insync_replicas = 1
        # Both are asked on every append, so they are kept rather than worked out. In a set that is large
        # enough acks=all may be promised: the floor is never above the number of replicas there are.
        self.is_leader_alone = True
        self.is_large_enough = True
        self._ends: dict[int, int] = {}

    def reset(self, replicas: Iterable[int], members: Iterable[int], min_insync_replicas: int) -> None:
        """Take the sets of the metadata log. What followers have is kept for those that remain."""
        self.replicas = tuple(replicas)
        self.members = frozenset(members)
        self.min_insync_replicas = min_insync_replicas
        self.is_leader_alone = self.members == {self.leader}
        self.is_large_enough = len(self.members) >= min(min_insync_replicas, len(self.replicas))
        self._ends = {replica: end for replica, end in self._ends.items() if replica in self.replicas}

    def advance(self, replica: int, end_offset: int) -> None:
        """A replica holds everything below `end_offset`."""
        self._ends[replica] = end_offset

    def high_watermark(self, current: int) -> int:
        """The watermark now, never below `current`."""
        if not self.members or not self.is_large_enough:
            return current
        return max(current, min(self._ends.get(replica, 0) for replica in self.members))
