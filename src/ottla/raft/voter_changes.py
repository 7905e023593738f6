"""How the voters change while the quorum runs: one at a time, by a record in the log (KIP-853).

AddRaftVoter (80), RemoveRaftVoter (81) and UpdateRaftVoter (82). A set of voters counts from the moment its
record is in the log, and is committed by its own majority. Two sets that differ in one voter have no
majorities without a common member, so no two leaders can come of it, as long as the one before is committed
and the leader has committed something in its own epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from ottla.core.ids import ZERO_UUID
from ottla.protocol import codec
from ottla.protocol.control import ControlRecordType
from ottla.protocol.errors import (
    NONE,
    DuplicateVoter,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnsupportedVersion,
    VoterNotFound,
)
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from ottla.protocol.stored.quorum import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from ottla.raft.effects import Send
from ottla.raft.leading import Leading
from ottla.raft.membership import Address, VoterKey
from ottla.raft.partition import check_cluster
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Leader

KRAFT_VERSION: Final = "kraft.version"
# A request for versions without a name is refused.
SOFTWARE_NAME: Final = "ottla"
SOFTWARE_VERSION: Final = "1"
# A node that was up with the log once and fetched within this time may get a vote.
FETCHED_WITHIN_MS: Final = 3_600_000


class _Endpoint(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Pending:
    """A change under way. `error` is None while it is, NONE when it was committed."""

    def __init__(
        self, request: AddRaftVoterRequest | RemoveRaftVoterRequest, epoch: int, deadline_ms: int
    ) -> None:
        self.request = request
        self.epoch = epoch
        self.deadline_ms = deadline_ms
        # Of the record with the new voters, once it is written.
        self.offset: int | None = None
        self.is_done = False
        self.error: KafkaError | None = None


class VoterChanges:
    def __init__(self, quorum: QuorumState, leading: Leading) -> None:
        self._quorum = quorum
        self._leading = leading
        self.pending: Pending | None = None

    # --- the requests --------------------------------------------------------------------------

    def add(self, request: AddRaftVoterRequest, now_ms: int) -> KafkaError | int | None:
        """NONE or an error when it is decided; None while it is under way: ask again with the same object."""
        try:
            if self._is_under_way(request):
                return self._outcome()
            state = self._check(request.cluster_id, now_ms)
            key = VoterKey(request.voter_id, request.voter_directory_id)
            address = self._quorum.choose(_addresses(request.listeners))
            if key.id < 0 or key.directory_id == ZERO_UUID or address is None:
                raise InvalidRequest("a voter needs an id, a directory id and a listener")
            if key.id in self._quorum.voters.nodes:
                raise DuplicateVoter(f"node {key.id} is a voter already")
            if not self._quorum.requests.is_ready(address, ApiVersionsRequest, now_ms):
                raise RequestTimedOut(f"node {key.id} is not ready to receive requests")
        except KafkaError as error:
            return error
        self._begin(request, state, now_ms)
        # What the new voter can do is for itself to say.
        hello = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        self._quorum.send(address, key.id, hello)
        return None

    def remove(self, request: RemoveRaftVoterRequest, now_ms: int) -> KafkaError | int | None:
        """The same for a voter that is to lose its vote. A leader may remove itself, and then resigns."""
        try:
            if self._is_under_way(request):
                return self._outcome()
            state = self._check(request.cluster_id, now_ms)
            key = VoterKey(request.voter_id, request.voter_directory_id)
            voters = self._voters()
            left = [voter for voter in voters if _key(voter) != key]
            if len(left) == len(voters) or not left:
                raise VoterNotFound(f"node {key.id} with directory {key.directory_id} cannot be removed")
        except KafkaError as error:
            return error
        pending = self._begin(request, state, now_ms)
        pending.offset = self._append(state, left, now_ms)
        self.poll(state, now_ms)
        return self._outcome()

    def update(self, request: UpdateRaftVoterRequest, now_ms: int) -> UpdateRaftVoterResponse:
        """A voter has moved to other addresses, or learnt something."""
        quorum = self._quorum
        code = NONE
        try:
            self._leading.check(request.current_leader_epoch)
            state = self._check(request.cluster_id, now_ms)
            key = VoterKey(request.voter_id, request.voter_directory_id)
            offered = request.kraft_version_feature
            version = quorum.membership.kraft_version
            if not offered.min_supported_version <= version <= offered.max_supported_version:
                raise InvalidRequest
            if quorum.choose(_addresses(request.listeners)) is None:
                raise InvalidRequest
            voters = self._voters()
            if key not in [_key(voter) for voter in voters]:
                raise VoterNotFound
            feature = KRaftVersionFeature(
                min_supported_version=offered.min_supported_version,
                max_supported_version=offered.max_supported_version,
            )
            changed = _voter(key, request.listeners, feature)
            self._append(state, [changed if _key(voter) == key else voter for voter in voters], now_ms)
        except KafkaError as error:
            code = error.code
        leader = CurrentLeader(leader_id=quorum.leader_id, leader_epoch=quorum.epoch)
        address = quorum.choose(quorum.leader_addresses)
        if address is not None:
            leader.host, leader.port = address.host, address.port
        return UpdateRaftVoterResponse(error_code=code, current_leader=leader)

    # --- how they go on ------------------------------------------------------------------------

    def answered(self, sent: Send, response: ApiVersionsResponse, now_ms: int) -> None:
        """What a node that wants a vote can do."""
        pending, state = self.pending, self._quorum.state
        if pending is None or pending.is_done or pending.offset is not None or not isinstance(state, Leader):
            return
        request = pending.request
        if not isinstance(request, AddRaftVoterRequest) or request.voter_id != sent.node_id:
            return
        key = VoterKey(request.voter_id, request.voter_directory_id)
        try:
            feature = self._check_versions(response)
            replica = state.leading.observers.get(key)
            if (
                replica is None
                or replica.last_caught_up_ms < 0
                or now_ms - replica.last_fetch_ms > FETCHED_WITHIN_MS
            ):
                # With a vote it would keep everybody waiting.
                raise RequestTimedOut(f"node {key.id} is behind with the log")
        except KafkaError as error:
            self._end(error)
            return
        voters = [*self._voters(), _voter(key, request.listeners, feature)]
        pending.offset = self._append(state, voters, now_ms)
        if not request.ack_when_committed:
            self._end(None)

    def failed(self, sent: Send) -> None:
        if self.pending is not None and self.pending.offset is None:
            self._end(RequestTimedOut(f"node {sent.node_id} does not answer"))

    def poll(self, state: Leader, now_ms: int) -> None:
        """Finish what is committed, give up what takes too long; and resign if we have no vote any more."""
        quorum, pending = self._quorum, self.pending
        mark = state.leading.high_watermark
        if pending is not None and not pending.is_done:
            if pending.offset is not None and mark is not None and mark > pending.offset:
                self._end(None)
            elif now_ms >= pending.deadline_ms:
                self._end(RequestTimedOut("the change was not committed in time"))
        if mark is not None and mark > quorum.membership.last_change and not quorum.is_voter:
            quorum.become_resigned(now_ms)

    def deadline(self) -> int | None:
        return None if self.pending is None or self.pending.is_done else self.pending.deadline_ms

    # --- details -------------------------------------------------------------------------------

    def _is_under_way(self, request: object) -> bool:
        return self.pending is not None and self.pending.request is request

    def _outcome(self) -> KafkaError | int | None:
        pending = self.pending
        assert pending is not None
        if not pending.is_done and (
            not isinstance(self._quorum.state, Leader) or pending.epoch != self._quorum.epoch
        ):
            # It may yet be committed by the next leader.
            self._end(NotLeaderOrFollower())
        if not pending.is_done:
            return None
        self.pending = None
        return pending.error or NONE

    def _begin(
        self, request: AddRaftVoterRequest | RemoveRaftVoterRequest, state: Leader, now_ms: int
    ) -> Pending:
        timeout_ms = self._quorum.settings.request_timeout_ms
        self.pending = Pending(request, self._quorum.epoch, now_ms + timeout_ms)
        return self.pending

    def _end(self, error: KafkaError | None) -> None:
        assert self.pending is not None
        self.pending.is_done, self.pending.error = True, error

    def _check(self, cluster_id: str | None, now_ms: int) -> Leader:
        """Whether the voters may be changed now, by us."""
        quorum, state = self._quorum, self._quorum.state
        check_cluster(cluster_id, quorum.cluster_id)
        if not isinstance(state, Leader):
            raise NotLeaderOrFollower
        pending = self.pending
        if pending is not None and not pending.is_done and pending.epoch == quorum.epoch:
            raise RequestTimedOut("another change of the voters is under way")
        mark = state.leading.high_watermark
        if mark is None:
            raise RequestTimedOut("the leader has not committed anything in its epoch yet")
        if quorum.membership.kraft_version < 1 or quorum.membership.voters is None:
            raise UnsupportedVersion("the voters of this cluster are set by configuration (kraft.version 0)")
        if quorum.membership.last_change >= mark:
            raise RequestTimedOut("the last change of the voters is not committed yet")
        return state

    def _check_versions(self, response: ApiVersionsResponse) -> KRaftVersionFeature:
        if response.error_code:
            raise RequestTimedOut("the new voter does not say what it can do")
        version = self._quorum.membership.kraft_version
        for feature in response.supported_features:
            if feature.name == KRAFT_VERSION and feature.min_version <= version <= feature.max_version:
                return KRaftVersionFeature(
                    min_supported_version=feature.min_version, max_supported_version=feature.max_version
                )
        raise InvalidRequest(f"the new voter does not know kraft.version {version}")

    def _voters(self) -> list[Voter]:
        return list(self._quorum.membership.voters or ())

    def _append(self, state: Leader, voters: Sequence[Voter], now_ms: int) -> int:
        """Write the new voters down. They count from here on."""
        quorum, leading = self._quorum, state.leading
        value = codec.encode(VotersRecord(voters=list(voters)), 0)
        records = quorum.log.append_control([(ControlRecordType.KRAFT_VOTERS, value)], quorum.epoch)
        for record in records:
            quorum.membership.apply(record)
        leading.follow_voters(quorum.voters, now_ms)
        quorum.grown()
        self._leading.persisted(state)
        return records[-1].offset


def _addresses(listeners: Iterable[_Endpoint]) -> tuple[Address, ...]:
    return tuple(Address(each.name, each.host, each.port) for each in listeners)


def _key(voter: Voter) -> VoterKey:
    return VoterKey(voter.voter_id, voter.voter_directory_id)


def _voter(key: VoterKey, listeners: Iterable[_Endpoint], feature: KRaftVersionFeature) -> Voter:
    return Voter(
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        endpoints=[Endpoint(name=each.name, host=each.host, port=each.port) for each in listeners],
        kraft_version_feature=feature,
    )
