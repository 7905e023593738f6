"""Who votes, as the log says it: the control records that set kraft.version and the voters (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.core.ids import Uuid
from ottla.protocol import codec
from ottla.protocol.control import ControlRecord, ControlRecordType
from ottla.protocol.stored.quorum import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VotersRecord,
)

SUPPORTED_KRAFT_VERSIONS = (0, 1)

ControlValue = tuple[ControlRecordType, bytes]


class Address(NamedTuple):
    """Where a voter listens for the others."""

    name: str
    host: str
    port: int


class VoterKey(NamedTuple):
    """A voter is a node with a particular disk: the same node with an empty one is another voter."""

    id: int
    directory_id: Uuid


class _State(NamedTuple):
    """What holds from an offset on."""

    offset: int
    kraft_version: int
    voters: list[Voter] | None
    is_in_log: bool


class Membership:
    """kraft.version and the voters at the end of the log; None when the voters are set by configuration.

    They count from the moment they are in the log, committed or not. So what was before is kept as well: when
    the end of the log is cut off, its voters go with it.
    """

    def __init__(self) -> None:
        self.kraft_version = 0
        self.voters: list[Voter] | None = None
        # Whether the log itself (rather than the snapshot made by formatting) has these records.
        self.is_in_log = False
        # The offset of the last record that changed something, and what was before each of them.
        self._offset = -1
        self._before: list[_State] = []

    def apply(self, record: ControlRecord, *, in_log: bool = True) -> None:
        """Take over a record: first those of the snapshot (with `in_log` unless it is the one that formatting
        made), then those of the log in their order."""
        if record.type not in (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS):
            return
        self._before.append(_State(self._offset, self.kraft_version, self.voters, self.is_in_log))
        self._offset = record.offset if in_log else -1
        if record.type is ControlRecordType.KRAFT_VERSION:
            self.kraft_version = codec.decode(KRaftVersionRecord, 0, record.value).kraft_version
            self.is_in_log |= in_log
        else:
            self.voters = codec.decode(VotersRecord, 0, record.value).voters

    @property
    def last_change(self) -> int:
        """The offset of the last record that changed something, or -1."""
        return self._offset

    @property
    def voters_before(self) -> list[Voter] | None:
        """The voters before the last change."""
        return self._before[-1].voters if self._before else None

    def truncate_to(self, offset: int) -> None:
        """The log ends at `offset` now: what was said from there on is forgotten."""
        while self._before and self._offset >= offset:
            self._offset, self.kraft_version, self.voters, self.is_in_log = self._before.pop()

    def restart(self, records: Iterable[ControlRecord]) -> None:
        """The log was replaced by a snapshot, which holds these control records."""
        self.kraft_version, self.voters, self.is_in_log = 0, None, False
        self._offset, self._before = -1, []
        for record in records:
            self.apply(record)

    def at(self, offset: int) -> Membership:
        """What holds for a log that ends at `offset`: this is what belongs in a snapshot with that end."""
        found = Membership()
        found.kraft_version, found.voters, found.is_in_log = self.kraft_version, self.voters, self.is_in_log
        found._offset, found._before = self._offset, list(self._before)
        found.truncate_to(offset)
        return found

    def with_voter(self, node: VoterKey, addresses: Sequence[Address]) -> Membership:
        """The same with one of the voters at these addresses."""
        made = Membership()
        made.kraft_version = self.kraft_version
        made.voters = [
            voter_at(node, addresses)
            if addresses and (voter.voter_id, voter.voter_directory_id) == node
            else voter
            for voter in self.voters or ()
        ]
        return made

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return tuple(voter.voter_id for voter in self.voters or ())

    def records(self) -> list[ControlValue]:
        """The control records that carry this membership into a snapshot."""
        if self.kraft_version < 1:
            return []
        version = KRaftVersionRecord(kraft_version=self.kraft_version)
        return [
            (ControlRecordType.KRAFT_VERSION, codec.encode(version, 0)),
            (ControlRecordType.KRAFT_VOTERS, codec.encode(VotersRecord(voters=self.voters or []), 0)),
        ]


def standalone(node: VoterKey, address: Address) -> Membership:
    """A quorum of one, as `kafka-storage format --standalone` makes it."""
    return initial({node: address})


def initial(controllers: dict[VoterKey, Address]) -> Membership:
    """The first voters, as `kafka-storage format --initial-controllers` makes them."""
    made = Membership()
    made.kraft_version = 1
    made.voters = [voter_at(node, [address]) for node, address in controllers.items()]
    return made


def voter_at(node: VoterKey, addresses: Iterable[Address]) -> Voter:
    """A voter like this node, that knows what we know."""
    return Voter(
        voter_id=node.id,
        voter_directory_id=node.directory_id,
        endpoints=[Endpoint(name=a.name, host=a.host, port=a.port) for a in addresses],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=SUPPORTED_KRAFT_VERSIONS[0],
            max_supported_version=SUPPORTED_KRAFT_VERSIONS[1],
        ),
    )


def leader_change(leader: int, voters: tuple[int, ...], granting: tuple[int, ...]) -> ControlValue:
    """The first record of an epoch. Version 0 names nodes without their directories, as Kafka writes it."""
    message = LeaderChangeMessage(
        leader_id=leader,
        voters=[LeaderChangeVoter(voter_id=voter) for voter in voters],
        granting_voters=[LeaderChangeVoter(voter_id=voter) for voter in granting],
    )
    return ControlRecordType.LEADER_CHANGE, codec.encode(message, 0)
