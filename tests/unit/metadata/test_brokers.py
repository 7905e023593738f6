"""Brokers come, stay, go, and crash."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import UNASSIGNED_DIRECTORY, Uuid
from ottla.metadata.cluster import Endpoint
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import Feature
from ottla.protocol.messages.controller_registration import ControllerRegistrationRequest, Listener
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from ottla.protocol.stored.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.unit.metadata.cluster import directory_of

UNSUPPORTED_VERSION = 35
STALE_BROKER_EPOCH = 77
DUPLICATE_BROKER_REGISTRATION = 101
BROKER_ID_NOT_REGISTERED = 102
INCONSISTENT_CLUSTER_ID = 104
INVALID_REGISTRATION = 119

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


@pytest.fixture
def empty(make_cluster: Any) -> Any:
    return make_cluster()


# --- registration ----------------------------------------------------------------------------


def test_a_broker_registers_fenced_in_the_epoch_of_its_place_in_the_log(empty: Any) -> None:
    at = empty.offset
    answer = empty.register(1, rack="r", log_dirs=[ONE])

    broker = empty.image.brokers[1]
    assert answer.broker_epoch == broker.epoch == broker.offset == at
    assert broker.fenced
    assert (broker.rack, broker.directories) == ("r", (ONE,))
    assert broker.endpoints == (Endpoint("PLAINTEXT", "b1", 9092, 0),)
    assert [type(record) for record in empty.last] == [RegisterBrokerRecord]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"cluster_id": "another"}, INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": []}, INVALID_REGISTRATION),
        ({"log_dirs": [UNASSIGNED_DIRECTORY]}, INVALID_REGISTRATION),
        ({"log_dirs": [ONE, ONE]}, INVALID_REGISTRATION),
        ({"features": []}, INVALID_REGISTRATION),
        (
            {
                "features": [
                    Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)
                ]
            },
            UNSUPPORTED_VERSION,
        ),
        # It says nothing of features that the cluster has switched on.
        (
            {
                "features": [
                    Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
                ]
            },
            UNSUPPORTED_VERSION,
        ),
    ],
)
def test_a_broker_that_does_not_belong_is_refused(empty: Any, given: Any, error: int) -> None:
    assert empty.register(1, **given).error_code == error
    assert empty.image.brokers == {}


def test_a_directory_belongs_to_one_broker(empty: Any) -> None:
    empty.register(1, log_dirs=[ONE])
    assert empty.register(2, log_dirs=[TWO, ONE]).error_code == INVALID_REGISTRATION


def test_another_broker_of_the_same_id_waits_until_the_first_is_silent(empty: Any) -> None:
    empty.start(1)
    elsewhere = [directory_of(1, 7)]
    assert empty.register(1, log_dirs=elsewhere).error_code == DUPLICATE_BROKER_REGISTRATION
    empty.now_ms += 9_001
    assert empty.register(1, log_dirs=elsewhere).error_code == 0


def test_a_broker_that_restarts_on_its_own_disk_need_not_wait_for_its_predecessor(empty: Any) -> None:
    empty.start(1)
    before = empty.image.brokers[1].epoch
    assert empty.register(1).error_code == 0
    assert empty.image.brokers[1].epoch > before
    assert empty.image.brokers[1].fenced


def test_registering_again_unchanged_keeps_epoch_and_standing(empty: Any) -> None:
    empty.start(1)
    before = empty.image.brokers[1]
    answer = empty.register(1, incarnation_id=before.incarnation_id, rack="moved")
    assert answer.broker_epoch == before.epoch
    assert (empty.image.brokers[1].fenced, empty.image.brokers[1].rack) == (False, "moved")


def test_a_controller_registers(empty: Any) -> None:
    request = ControllerRegistrationRequest(
        controller_id=7, incarnation_id=ONE, listeners=[Listener(name="CONTROLLER", host="c", port=9093)]
    )
    assert empty.do(request).error_code == 0
    assert empty.image.controllers[7].endpoints == (Endpoint("CONTROLLER", "c", 9093, 0),)


def test_a_cluster_too_old_for_it_registers_no_controllers(make_cluster: Any) -> None:
    cluster = make_cluster(level=14)
    assert cluster.do(ControllerRegistrationRequest(controller_id=7)).error_code == UNSUPPORTED_VERSION


# --- heartbeats ------------------------------------------------------------------------------


def test_a_broker_is_unfenced_once_it_has_seen_itself_registered(empty: Any) -> None:
    empty.register(1)
    registered = empty.image.brokers[1].offset

    behind = empty.heartbeat(1, current_metadata_offset=registered - 1)
    assert (behind.is_fenced, behind.is_caught_up, empty.last) == (True, False, [])
    waiting = empty.heartbeat(1, current_metadata_offset=registered, want_fence=True)
    assert (waiting.is_fenced, waiting.is_caught_up) == (True, True)
    ready = empty.heartbeat(1, current_metadata_offset=registered)
    assert not ready.is_fenced
    assert empty.last == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=registered, fenced=-1)]


def test_a_heartbeat_that_changes_nothing_writes_nothing(empty: Any) -> None:
    empty.start(1)
    empty.heartbeat(1)
    assert empty.last == []


def test_a_heartbeat_is_from_a_registered_broker_in_its_epoch(empty: Any) -> None:
    unknown = empty.do(BrokerHeartbeatRequest(broker_id=1, broker_epoch=0))
    assert unknown.error_code == BROKER_ID_NOT_REGISTERED
    empty.register(1)
    assert empty.heartbeat(1, broker_epoch=12345).error_code == STALE_BROKER_EPOCH


def test_a_silent_broker_is_fenced_and_its_partitions_find_new_leaders(cluster: Any) -> None:
    cluster.create("orders", (1, 2), (2, 3))
    cluster.crash(1)

    assert cluster.image.brokers[1].fenced
    assert not cluster.image.brokers[2].fenced
    state = cluster.state("orders", 0)
    assert (state.leader, state.isr, state.leader_epoch, state.partition_epoch) == (2, (2,), 1, 1)
    assert cluster.state("orders", 1).partition_epoch == 0


def test_a_late_controller_does_not_blame_the_brokers(cluster: Any) -> None:
    cluster.now_ms += 60_000
    cluster.controller.state.sessions.forgive(60_000)
    assert cluster.controller.expire(cluster.now_ms) == []
    assert cluster.controller.deadline() == cluster.now_ms + 9_001


def test_a_broker_whose_connection_broke_is_fenced_soon_unless_it_is_heard(cluster: Any) -> None:
    for broker in (1, 2):
        cluster.controller.missed(broker, cluster.now_ms, cluster.image.brokers[broker].epoch)
    cluster.controller.missed(3, cluster.now_ms, epoch=12345)  # of another life
    cluster.controller.missed(99, cluster.now_ms)
    cluster.now_ms += 1_000
    cluster.heartbeat(2)
    assert cluster.controller.expire(cluster.now_ms) == []
    assert cluster.controller.deadline() == cluster.now_ms + 3_001
    cluster.now_ms += 3_001
    assert cluster.controller.expire(cluster.now_ms) != []
    assert cluster.controller.deadline() > cluster.now_ms


def test_a_broker_that_asks_for_it_is_fenced(cluster: Any) -> None:
    assert cluster.heartbeat(1, want_fence=True).is_fenced
    assert cluster.image.brokers[1].fenced


def test_a_directory_that_fails_takes_its_leaders_with_it(make_cluster: Any) -> None:
    cluster = make_cluster()
    cluster.start(1, log_dirs=[ONE])
    cluster.start(2)
    cluster.create("orders", (1, 2))

    cluster.heartbeat(1, offline_log_dirs=[ONE])

    assert cluster.state("orders").leader == 2
    # Nothing is left to write that list with, but the broker itself stays.
    assert not cluster.image.brokers[1].fenced


def test_cordoned_directories_take_no_new_replicas(make_cluster: Any) -> None:
    cluster = make_cluster()
    cluster.start(1, log_dirs=[ONE])
    cluster.start(2, log_dirs=[TWO])
    cluster.heartbeat(1, cordoned_log_dirs=[ONE])
    assert cluster.image.brokers[1].cordoned == (ONE,)
    cluster.heartbeat(1, cordoned_log_dirs=[ONE])
    assert cluster.last == []

    from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

    many = CreatableTopic(name="orders", num_partitions=6, replication_factor=1)
    cluster.do(CreateTopicsRequest(topics=[many]))
    assert {state.leader for _, _, state in cluster.image.partitions()} == {2}


# --- leaving ---------------------------------------------------------------------------------


def test_a_controlled_shutdown_moves_leaders_first_and_then_fences(cluster: Any) -> None:
    cluster.create("orders", (1, 2))

    first = cluster.heartbeat(1, want_shut_down=True)
    assert not first.should_shut_down
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert (cluster.state("orders").leader, cluster.state("orders").isr) == (2, (2,))
    # The others have not heard of it yet.
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down

    for other in (2, 3):
        cluster.heartbeat(other)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.image.brokers[1].fenced


def test_who_leads_nothing_may_go_at_once(cluster: Any) -> None:
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


def test_a_lone_broker_that_stops_cleanly_leads_again(make_cluster: Any) -> None:
    cluster = make_cluster()
    cluster.start(1)
    cluster.create("orders", (1,))
    epoch = cluster.image.brokers[1].epoch

    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.last == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=cluster.image.topics["orders"].id,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        ),
    ]
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.last == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)]

    cluster.start(1, previous_broker_epoch=epoch)
    state = cluster.state("orders")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (1, (1,), (), ())
    assert (state.leader_epoch, state.leader_recovery_state) == (2, 0)


def test_a_lone_broker_that_crashed_leads_again_as_its_own_last_known_leader(make_cluster: Any) -> None:
    """What Apache Kafka 4.3 writes after kill -9, but for the nine seconds it waits for a dead session."""
    cluster = make_cluster()
    cluster.start(1)
    cluster.create("orders", (1,))
    topic_id = cluster.image.topics["orders"].id
    cluster.controller.activate([], cluster.now_ms, gone=1)

    cluster.register(1)
    assert cluster.last[0] == PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, isr=[], leader=-1, last_known_elr=[1]
    )
    assert isinstance(cluster.last[1], RegisterBrokerRecord)
    cluster.heartbeat(1)
    assert cluster.last[1] == PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, isr=[1], leader=1, leader_recovery_state=1, last_known_elr=[]
    )


def test_a_broker_that_crashed_is_not_eligible_while_another_is(cluster: Any) -> None:
    cluster.create("orders", (1, 2), min_insync_replicas="2")
    cluster.crash(2)
    cluster.crash(1)
    assert (cluster.state("orders").leader, cluster.state("orders").elr) == (-1, (1, 2))

    cluster.start(2)  # without a word about its last epoch: it may have lost its tail
    assert (cluster.state("orders").leader, cluster.state("orders").elr) == (-1, (1,))
    cluster.start(1, previous_broker_epoch=cluster.image.brokers[1].epoch)
    state = cluster.state("orders")
    assert (state.leader, state.isr, state.leader_recovery_state) == (1, (1,), 0)


def test_without_eligible_replicas_the_last_in_sync_stays_so(make_cluster: Any) -> None:
    cluster = make_cluster(elr=False)
    cluster.start(1)
    cluster.create("orders", (1,))
    cluster.heartbeat(1, want_shut_down=True)
    assert (cluster.state("orders").leader, cluster.state("orders").isr) == (-1, (1,))
    cluster.heartbeat(1, want_shut_down=True)
    cluster.start(1)
    assert (cluster.state("orders").leader, cluster.state("orders").leader_epoch) == (1, 2)


def test_a_broker_that_is_forgotten_is_nowhere_in_sync_or_eligible(cluster: Any) -> None:
    cluster.create("orders", (1, 2), min_insync_replicas="2")
    assert cluster.do(UnregisterBrokerRequest(broker_id=1)).error_code == 0
    assert isinstance(cluster.last[-1], UnregisterBrokerRecord)
    assert 1 not in cluster.image.brokers
    state = cluster.state("orders")
    assert (state.leader, state.isr, state.elr) == (2, (2,), ())
    assert cluster.do(UnregisterBrokerRequest(broker_id=1)).error_code == BROKER_ID_NOT_REGISTERED


def test_a_broker_that_left_comes_back_by_registering_again(cluster: Any) -> None:
    cluster.create("orders", (1, 2))
    cluster.heartbeat(1, want_shut_down=True)
    cluster.crash(1)
    assert cluster.heartbeat(1).is_fenced
    cluster.now_ms += 9_001
    cluster.start(1)
    assert cluster.image.is_active(1)
