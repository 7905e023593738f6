"""What a node of the quorum answers, and what it asks. How it holds up under faults is for the simulation."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import METADATA_TOPIC_ID, Uuid
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol import codec
from ottla.protocol.errors import (
    FencedLeaderEpoch,
    InconsistentClusterId,
    InvalidRequest,
    InvalidVoterKey,
    KafkaStorageError,
    NotLeaderOrFollower,
    SnapshotNotFound,
    UnknownLeaderEpoch,
)
from ottla.protocol.messages import begin_quorum_epoch as begin
from ottla.protocol.messages import end_quorum_epoch as end
from ottla.protocol.messages import fetch_snapshot
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    ReplicaState,
)
from ottla.protocol.messages.fetch import PartitionData as FetchedPartition
from ottla.protocol.messages.vote import (
    PartitionData,
    PartitionDataResponse,
    TopicData,
    TopicDataResponse,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.effects import Persist, Send, Sync
from ottla.raft.election_state import ElectionState
from ottla.raft.machine import NotLeader, Raft, Role
from ottla.raft.membership import Address, Membership, VoterKey
from ottla.raft.settings import RaftSettings
from tests.simulation.raft.log import SimulatedLog

KEYS = {id: VoterKey(id, Uuid(bytes(15) + bytes([id]))) for id in (1, 2, 3)}
PLACES = {id: Address("CONTROLLER", f"node-{id}", 9093) for id in (1, 2, 3)}


def machine(
    id: int = 1, voters: tuple[int, ...] = (1, 2, 3), election: ElectionState | None = None, **settings: Any
) -> Raft:
    """A node of a fixed quorum with an empty log."""
    return Raft(
        RaftSettings(
            voters=tuple((voter, PLACES[voter]) for voter in voters), endpoints=(PLACES[id],), **settings
        ),
        KEYS[id],
        SimulatedLog(lambda: None),
        Membership(),
        election,
        "cluster",
        0,
        lambda: 0.5,
        can_vote=id in voters,
    )


def sent(raft: Raft, kind: type) -> list[Send]:
    return [e for e in raft.take_effects() if isinstance(e, Send) and isinstance(e.request, kind)]


def vote_request(
    epoch: int, *, candidate: int = 2, last: tuple[int, int] = (0, 0), **options: Any
) -> VoteRequest:
    named = {"cluster_id": "cluster", "voter_id": 1} | {
        k: options.pop(k) for k in list(options) if k in ("cluster_id", "voter_id")
    }
    partition = PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=KEYS[candidate].directory_id,
        last_offset_epoch=last[0],
        last_offset=last[1],
        **options,
    )
    return VoteRequest(topics=[TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])], **named)


def verdict(response: VoteResponse) -> tuple[int, int, bool]:
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.leader_epoch, partition.vote_granted


def fetch_request(
    epoch: int, offset: int, last_epoch: int, *, replica: int = 2, **options: Any
) -> FetchRequest:
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        replica_directory_id=KEYS[replica].directory_id,
    )
    return FetchRequest(
        cluster_id="cluster",
        replica_state=ReplicaState(replica_id=replica),
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        **options,
    )


def elected(raft: Raft) -> Raft:
    """Let a node win: nobody else is there, and node 2 says yes to everything."""
    deadline = raft.deadline()
    assert deadline is not None
    now_ms = 3_000
    raft.expire(now_ms)
    for role in (Role.PROSPECTIVE, Role.CANDIDATE):
        assert raft.role is role
        [request] = [each for each in sent(raft, VoteRequest) if each.node_id == 2]
        raft.answered(request, granting(raft.epoch), now_ms)
    assert raft.is_leader
    return raft


def granting(epoch: int) -> VoteResponse:
    answer = PartitionDataResponse(leader_id=-1, leader_epoch=epoch, vote_granted=True)
    return VoteResponse(topics=[TopicDataResponse(topic_name=CLUSTER_METADATA, partitions=[answer])])


# --- votes -----------------------------------------------------------------------------------


def test_a_vote_is_persisted_before_it_is_given_and_given_once_in_an_epoch() -> None:
    raft = machine()
    raft.take_effects()
    assert verdict(raft.vote(vote_request(1, candidate=2), 0)) == (0, 1, True)
    voted = [each.election for each in raft.take_effects() if isinstance(each, Persist)]
    assert voted[-1] == ElectionState(1, -1, 2, KEYS[2].directory_id)
    assert verdict(raft.vote(vote_request(1, candidate=3), 0)) == (0, 1, False)
    assert verdict(raft.vote(vote_request(1, candidate=2), 0)) == (0, 1, True)
    assert verdict(raft.vote(vote_request(2, candidate=3), 0)) == (0, 2, True)
    assert verdict(raft.vote(vote_request(1, candidate=2), 0)) == (FencedLeaderEpoch.code, 2, False)


def test_a_pre_vote_binds_nobody() -> None:
    raft = machine()
    assert verdict(raft.vote(vote_request(0, candidate=2, pre_vote=True), 0)) == (0, 0, True)
    assert verdict(raft.vote(vote_request(0, candidate=3, pre_vote=True), 0)) == (0, 0, True)
    assert raft.epoch == 0


def test_votes_that_make_no_sense_are_refused() -> None:
    raft = machine()
    assert raft.vote(vote_request(1, cluster_id="other"), 0).error_code == InconsistentClusterId.code
    assert raft.vote(VoteRequest(cluster_id="cluster"), 0).error_code == InvalidRequest.code
    assert verdict(raft.vote(vote_request(1, last=(1, 5)), 0))[0] == InvalidRequest.code
    assert verdict(raft.vote(vote_request(1, last=(0, -1)), 0))[0] == InvalidRequest.code
    assert verdict(raft.vote(vote_request(1, voter_id=3), 0))[0] == InvalidVoterKey.code
    other_disk = vote_request(1, voter_directory_id=KEYS[3].directory_id)
    assert verdict(raft.vote(other_disk, 0))[0] == InvalidVoterKey.code


def test_an_old_vote_request_without_a_voter_key_is_as_good() -> None:
    assert verdict(machine().vote(vote_request(1, voter_id=-1), 0)) == (0, 1, True)


# --- leading ---------------------------------------------------------------------------------


def test_the_only_voter_leads_at_once() -> None:
    raft = machine(voters=(1,))
    assert (raft.role, raft.epoch, raft.leader_id) == (Role.LEADER, 1, 1)
    effects = raft.take_effects()
    assert [each.election.epoch for each in effects if isinstance(each, Persist)] == [1, 1]
    assert [type(each) for each in effects][-1] is Sync
    raft.synced(1, 0)
    assert raft.high_watermark == 1


def test_a_leader_announces_itself_and_commits_with_a_majority() -> None:
    raft = elected(machine())
    begun = sent(raft, begin.BeginQuorumEpochRequest)
    assert sorted(each.node_id for each in begun) == [2, 3]
    assert begun[0].request == codec.decode(
        begin.BeginQuorumEpochRequest, 1, codec.encode(begun[0].request, 1)
    )
    raft.synced(1, 3_000)
    assert raft.high_watermark is None
    assert raft.fetch(fetch_request(1, 0, 0), 3_001) is not None
    assert raft.high_watermark is None
    raft.fetch(fetch_request(1, 1, 1), 3_002)
    assert raft.high_watermark == 1


def test_a_fetch_waits_until_there_is_something_to_say() -> None:
    raft = elected(machine())
    request = fetch_request(1, 1, 1, max_wait_ms=500)
    assert raft.fetch(request, 3_000) is None
    raft.append(bytearray([1, 7]))
    response = raft.fetch(request, 3_000)
    assert response is not None
    assert len(response.responses[0].partitions[0].records or b"") == 1
    idle = fetch_request(1, 2, 1, max_wait_ms=500)
    assert raft.fetch(idle, 3_000) is None
    assert raft.fetch(idle, 3_500, waited=True) is not None


def test_a_fetch_of_another_epoch_or_past_is_put_right() -> None:
    raft = elected(machine())

    def asked(*where: int) -> Any:
        response = raft.fetch(fetch_request(*where), 3_000)
        assert response is not None
        return response.responses[0].partitions[0]

    fenced = asked(0, 0, 0)
    assert fenced.error_code == FencedLeaderEpoch.code
    assert (fenced.current_leader.leader_id, fenced.current_leader.leader_epoch) == (1, 1)
    assert asked(2, 0, 0).error_code == UnknownLeaderEpoch.code
    diverging = asked(1, 9, 0).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 0)


def test_a_follower_says_who_leads() -> None:
    raft = machine(election=ElectionState(epoch=4, leader_id=3))
    response = raft.fetch(fetch_request(4, 0, 0), 0)
    assert response is not None
    partition = response.responses[0].partitions[0]
    assert partition.error_code == NotLeaderOrFollower.code
    assert partition.current_leader.leader_id == 3
    assert [(e.node_id, e.host) for e in response.node_endpoints] == [(3, "node-3")]
    with pytest.raises(NotLeader):
        raft.append(bytearray([1, 7]))


def test_a_leader_that_nobody_fetches_from_resigns_and_says_so() -> None:
    raft = elected(machine())
    raft.expire(3_000 + 3_000)
    assert raft.role is Role.RESIGNED
    assert raft.is_resigning
    farewell = sent(raft, end.EndQuorumEpochRequest)
    assert sorted(each.node_id for each in farewell) == [2, 3]


def test_a_leader_of_before_does_not_lead_its_epoch_again() -> None:
    raft = machine(election=ElectionState(epoch=3, leader_id=1))
    assert raft.role is Role.RESIGNED
    assert verdict(raft.vote(vote_request(3, candidate=2), 0)) == (0, 3, False)


def test_a_snapshot_that_is_not_there_is_not_found() -> None:
    raft = elected(machine())
    partition = fetch_snapshot.PartitionSnapshot(
        current_leader_epoch=1, snapshot_id=fetch_snapshot.SnapshotId(end_offset=5, epoch=1)
    )
    topic = fetch_snapshot.TopicSnapshot(name=CLUSTER_METADATA, partitions=[partition])
    request = fetch_snapshot.FetchSnapshotRequest(cluster_id="cluster", replica_id=2, topics=[topic])
    answer = raft.fetch_snapshot(request, 3_000)
    assert answer.topics[0].partitions[0].error_code == SnapshotNotFound.code


# --- following -------------------------------------------------------------------------------


def told(epoch: int, leader: int) -> begin.BeginQuorumEpochRequest:
    partition = begin.PartitionData(leader_id=leader, leader_epoch=epoch)
    return begin.BeginQuorumEpochRequest(
        cluster_id="cluster", topics=[begin.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    )


def test_a_voter_follows_whoever_has_won() -> None:
    raft = machine()
    raft.take_effects()
    raft.begin_quorum_epoch(told(2, 3), 0)
    assert (raft.role, raft.epoch, raft.leader_id) == (Role.FOLLOWER, 2, 3)
    assert raft.leader_address == PLACES[3]
    [fetch] = sent(raft, FetchRequest)
    assert (fetch.to, fetch.node_id) == (PLACES[3], 3)
    refused = raft.begin_quorum_epoch(told(2, 2), 0)
    assert refused.topics[0].partitions[0].error_code == InvalidRequest.code
    stale = raft.begin_quorum_epoch(told(1, 2), 0)
    assert stale.topics[0].partitions[0].error_code == FencedLeaderEpoch.code


def test_the_preferred_successor_runs_at_once() -> None:
    raft = machine()
    raft.begin_quorum_epoch(told(2, 3), 0)
    partition = end.PartitionData(leader_id=3, leader_epoch=2, preferred_successors=[1, 2])
    raft.end_quorum_epoch(
        end.EndQuorumEpochRequest(
            cluster_id="cluster", topics=[end.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
        ),
        10,
    )
    assert raft.role is Role.PROSPECTIVE


def test_an_observer_looks_for_the_leader_and_never_runs() -> None:
    raft = machine(3, voters=(1, 2))
    assert sent(raft, FetchRequest)
    raft.expire(100_000)
    assert raft.role is Role.UNATTACHED


def test_a_follower_whose_own_disk_fails_does_not_blame_the_leader() -> None:
    raft = machine()
    raft.take_effects()
    raft.begin_quorum_epoch(told(1, 2), 0)
    [request] = sent(raft, FetchRequest)

    def fail(records: Any) -> Any:
        raise KafkaStorageError("the disk is gone")

    raft._quorum.log.append_as_follower = fail  # type: ignore[method-assign]
    partition = FetchedPartition(
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1), high_watermark=0, records=b"records"
    )
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    with pytest.raises(KafkaStorageError):
        raft.answered(request, answer, 0)


def test_logs_that_part_nowhere_are_an_answer_that_makes_no_sense() -> None:
    raft = machine()
    raft.take_effects()
    raft.begin_quorum_epoch(told(1, 2), 0)
    [request] = sent(raft, FetchRequest)
    partition = FetchedPartition(
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
        diverging_epoch=EpochEndOffset(epoch=0, end_offset=-1),
    )
    raft.answered(request, FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])]), 0)
    assert raft.role is Role.FOLLOWER
    assert all(each.node_id != 2 for each in sent(raft, FetchRequest))  # it is left alone for a moment
