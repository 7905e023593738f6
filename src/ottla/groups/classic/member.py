"""One member of a classic group."""

from __future__ import annotations

from ottla.groups.timers import Timer
from ottla.protocol.messages.describe_groups import DescribedGroupMember
from ottla.protocol.messages.join_group import JoinGroupResponseMember


class Member:
    """What a member has said of itself, what it was given, and whether it waits for an answer.

    `protocols` maps the names of the assignors it supports, its favourite first, to its subscription.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "joining",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: dict[str, bytes],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.joining: object | None = None  # the ticket of a JoinGroup that waits
        self.syncing: object | None = None  # the ticket of a SyncGroup that waits
        self.is_new = False  # has never been told that it is a member
        self.session: Timer | None = None

    @property
    def must_not_expire(self) -> bool:
        """Whoever waits for us cannot send heartbeats. A new member may be gone without us knowing."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def vote(self, candidates: set[str]) -> str:
        return next(name for name in self.protocols if name in candidates)

    def matches(self, protocols: dict[str, bytes]) -> bool:
        """Whether it has said the same before, in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def for_leader(self, protocol: str) -> JoinGroupResponseMember:
        return JoinGroupResponseMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            metadata=self.protocols[protocol],
        )

    def described(self, protocol: str | None) -> DescribedGroupMember:
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.protocols[protocol],
            member_assignment=self.assignment,
        )
