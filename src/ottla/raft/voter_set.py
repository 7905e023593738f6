"""The voters that count now, whoever named them: the log (kraft.version 1) or the configuration (0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.core.ids import ZERO_UUID
from ottla.raft.membership import Address, Membership, VoterKey
from ottla.raft.settings import RaftSettings


class VoterNode(NamedTuple):
    """A voter and where it listens. Its directory is zero where only ids are known (kraft.version 0)."""

    key: VoterKey
    addresses: tuple[Address, ...]

    def is_voter(self, key: VoterKey) -> bool:
        mine = self.key
        return mine.id == key.id and (mine.directory_id == ZERO_UUID or mine.directory_id == key.directory_id)


class VoterSet:
    def __init__(self, nodes: Iterable[VoterNode]) -> None:
        self.nodes: Mapping[int, VoterNode] = {node.key.id: node for node in nodes}

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def is_voter(self, key: VoterKey) -> bool:
        node = self.nodes.get(key.id)
        return node is not None and node.is_voter(key)

    def is_only_voter(self, key: VoterKey) -> bool:
        return len(self.nodes) == 1 and self.is_voter(key)

    def others(self, id: int) -> list[VoterNode]:
        return [node for node in self.nodes.values() if node.key.id != id]

    def addresses(self, id: int) -> tuple[Address, ...]:
        node = self.nodes.get(id)
        return node.addresses if node else ()


class Voters:
    """The current voter set, made anew when the membership has changed."""

    def __init__(
        self, settings: RaftSettings, membership: Membership, node: VoterKey, *, can_vote: bool
    ) -> None:
        self._membership = membership
        fixed = [VoterNode(VoterKey(id, ZERO_UUID), (address,)) for id, address in settings.voters]
        if not fixed and not settings.bootstrap_servers and can_vote:
            # Nobody else was named anywhere: we are the quorum.
            fixed = [VoterNode(VoterKey(node.id, ZERO_UUID), settings.endpoints)]
        self._configured = VoterSet(fixed)
        self._current = self._configured
        self._made_from: object = None

    @property
    def current(self) -> VoterSet:
        membership = self._membership
        if membership.kraft_version < 1 or membership.voters is None:
            return self._configured
        if self._made_from is not membership.voters:
            self._made_from = membership.voters
            self._current = VoterSet(
                VoterNode(
                    VoterKey(voter.voter_id, voter.voter_directory_id),
                    tuple(Address(e.name, e.host, e.port) for e in voter.endpoints),
                )
                for voter in membership.voters
            )
        return self._current
