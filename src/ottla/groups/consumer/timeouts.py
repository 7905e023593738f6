"""How long members may take: to be heard from, to give up partitions, to join and to sync.

The timers belong to the machine and not to a group, because a member's first timer starts when it joins:
before the record is written that makes it a member, and may be the group.
"""

from __future__ import annotations

from ottla.core.outcome import Now
from ottla.groups.timers import NEVER, Action, Timer, Timers


def is_running(timer: Timer | None) -> bool:
    return timer is not None and timer.at != NEVER


class MemberTimers:
    """The timers of one member that run."""

    __slots__ = ("join", "revocation", "session", "sync")

    def __init__(self) -> None:
        self.session: Timer | None = None
        self.revocation: Timer | None = None
        self.join: Timer | None = None  # of members that speak the classic protocol
        self.sync: Timer | None = None


class Timeouts:
    """The members' timers, by group and member id."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._of: dict[tuple[str, str], MemberTimers] = {}

    def of(self, group_id: str, member_id: str) -> MemberTimers:
        key = group_id, member_id
        timers = self._of.get(key)
        if timers is None:
            timers = self._of[key] = MemberTimers()
        return timers

    def put_off(self, group_id: str, member_id: str, timeout_ms: int, now: Now) -> bool:
        """Move the end of a session, which is all that most heartbeats do. False if it does not run."""
        timers = self._of.get((group_id, member_id))
        if timers is None or timers.session is None or timers.session.at == NEVER:
            return False
        self._timers.move(timers.session, now.monotonic_ms + timeout_ms)
        return True

    def restart(self, timer: Timer | None, timeout_ms: int, now: Now, action: Action) -> Timer:
        self._timers.cancel(timer)
        return self._timers.start(now.monotonic_ms + timeout_ms, action)

    def stop(self, timer: Timer | None) -> None:
        self._timers.cancel(timer)

    def forget(self, group_id: str, member_id: str) -> None:
        timers = self._of.pop((group_id, member_id), None)
        if timers is not None:
            for timer in (timers.session, timers.revocation, timers.join, timers.sync):
                self._timers.cancel(timer)
