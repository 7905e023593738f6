"""Configs, coordinators, producer ids and the cluster itself: who may, in which order it is asked, and what
a refusal looks like in old versions.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from ottla.core.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    InvalidRequest,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
)
from ottla.protocol.messages import alter_configs as legacy
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.server.broker_loggers import levels
from ottla.server.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from ottla.server.handlers.alter_configs import alter_configs
from ottla.server.handlers.alter_partition_reassignments import alter_partition_reassignments
from ottla.server.handlers.describe_cluster import describe_cluster
from ottla.server.handlers.describe_configs import describe_configs
from ottla.server.handlers.describe_log_dirs import describe_log_dirs
from ottla.server.handlers.elect_leaders import elect_leaders
from ottla.server.handlers.incremental_alter_configs import incremental_alter_configs
from ottla.server.handlers.init_producer_id import init_producer_id
from ottla.server.handlers.list_config_resources import list_config_resources
from ottla.server.handlers.update_features import update_features
from ottla.server.handlers.write_txn_markers import write_txn_markers
from tests.unit.server.authorization.conftest import Guarded, Right
from tests.unit.server.handlers.conftest import NODE_ID, Surroundings

NO_TOPIC: Final = TopicAuthorizationFailed.code
NO_GROUP: Final = GroupAuthorizationFailed.code
NO_CLUSTER: Final = ClusterAuthorizationFailed.code
NO_ID: Final = TransactionalIdAuthorizationFailed.code


def on_cluster(operation: Operation) -> Right:
    return operation, ResourceType.CLUSTER, CLUSTER_NAME


# --- configs ---------------------------------------------------------------------------------

KINDS: Final = [
    (TOPIC, "secret", NO_TOPIC),
    (TOPIC, "nowhere", NO_TOPIC),
    (BROKER, "", NO_CLUSTER),
    (BROKER, str(NODE_ID), NO_CLUSTER),
    (BROKER_LOGGER, str(NODE_ID), NO_CLUSTER),
    (BROKER_LOGGER, "99", NO_CLUSTER),
    (CLIENT_METRICS, "m", NO_CLUSTER),
    (GROUP, "g", NO_GROUP),
]


def test_each_resource_has_configs_for_those_who_may_see_them(cluster: Surroundings) -> None:
    for name in ("mine", "secret"):
        cluster.create(name)
    cluster.authorize((Operation.ALTER_CONFIGS, ResourceType.TOPIC, "mine"))
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name)
        for kind, name in [(TOPIC, "mine"), *((kind, name) for kind, name, _ in KINDS), (77, "x")]
    ]
    answer = cluster.call(describe_configs, DescribeConfigsRequest(resources=resources))
    codes = [each.error_code for each in answer.results]
    assert codes == [0, *(code for _, _, code in KINDS), InvalidRequest.code]
    assert [bool(each.configs) for each in answer.results] == [True] + [False] * (len(KINDS) + 1)


def test_a_right_to_configs_of_the_cluster_is_none_to_those_of_topics(cluster: Surroundings) -> None:
    cluster.create("secret")
    cluster.authorize(on_cluster(Operation.DESCRIBE_CONFIGS), on_cluster(Operation.ALTER_CONFIGS))
    resources = [DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name, _ in KINDS]
    answer = cluster.call(describe_configs, DescribeConfigsRequest(resources=resources))
    assert [each.error_code for each in answer.results] == [
        NO_TOPIC,
        NO_TOPIC,
        0,
        0,
        0,
        InvalidRequest.code,
        0,
        NO_GROUP,
    ]


def set_retention(kind: int, name: str, *configs: tuple[str, str | None]) -> incremental.AlterConfigsResource:
    return incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, value=value)
            for key, value in configs or [("retention.ms", "1")]
        ],
    )


def test_the_allowed_resources_of_a_request_are_altered(cluster: Surroundings) -> None:
    for name in ("mine", "secret"):
        cluster.create(name)
    cluster.authorize((Operation.ALTER_CONFIGS, ResourceType.TOPIC, "mine"))
    before = levels()
    resources = [
        set_retention(TOPIC, "mine"),
        set_retention(TOPIC, "secret"),
        set_retention(TOPIC, "nowhere"),
        set_retention(BROKER, "", ("log.retention.ms", "100000000")),
        set_retention(BROKER_LOGGER, str(NODE_ID), ("root", "ERROR")),
        set_retention(BROKER_LOGGER, "99", ("root", "ERROR")),
        set_retention(CLIENT_METRICS, "m", ("interval.ms", "1000")),
        set_retention(GROUP, "g", ("consumer.session.timeout.ms", "50000")),
    ]
    request = incremental.IncrementalAlterConfigsRequest(resources=resources)
    answer = cluster.call(incremental_alter_configs, request)
    assert [each.error_code for each in answer.responses] == [
        0,
        NO_TOPIC,
        NO_TOPIC,
        NO_CLUSTER,
        NO_CLUSTER,
        NO_CLUSTER,
        NO_CLUSTER,
        NO_GROUP,
    ]
    assert dict(cluster.image.configs) == {(TOPIC, "mine"): {"retention.ms": "1"}}
    assert levels() == before


def test_what_is_wrong_with_a_request_is_said_before_who_may_send_it(cluster: Surroundings) -> None:
    cluster.create("secret")
    cluster.authorize()
    resources = [
        set_retention(TOPIC, "secret", ("retention.ms", "1"), ("retention.ms", "2")),
        set_retention(TOPIC, "secret2", ("retention.ms", None)),
        set_retention(BROKER, "99", ("log.retention.ms", "100000000")),
        set_retention(77, "x"),
    ]
    request = incremental.IncrementalAlterConfigsRequest(resources=resources)
    answer = cluster.call(incremental_alter_configs, request)
    assert [each.error_code for each in answer.responses] == [InvalidRequest.code] * 4


def test_the_allowed_resources_of_a_request_are_replaced(cluster: Surroundings) -> None:
    for name in ("mine", "secret"):
        cluster.create(name, configs={"retention.bytes": "5"})
    cluster.authorize((Operation.ALTER_CONFIGS, ResourceType.TOPIC, "mine"))

    def replaced(kind: int, name: str, key: str) -> legacy.AlterConfigsResource:
        configs = [legacy.AlterableConfig(name=key, value="50000")]
        return legacy.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)

    resources = [
        replaced(TOPIC, "mine", "retention.ms"),
        replaced(TOPIC, "secret", "retention.ms"),
        replaced(BROKER, str(NODE_ID), "log.retention.ms"),
        replaced(GROUP, "g", "consumer.session.timeout.ms"),
    ]
    answer = cluster.call(alter_configs, legacy.AlterConfigsRequest(resources=resources))
    assert [each.error_code for each in answer.responses] == [0, NO_TOPIC, NO_CLUSTER, NO_GROUP]
    assert cluster.image.config(TOPIC, "mine") == {"retention.ms": "50000"}
    assert cluster.image.config(TOPIC, "secret") == {"retention.bytes": "5"}


def test_who_may_not_list_what_has_configs_is_not_told_which_kinds_there_are(cluster: Surroundings) -> None:
    request = ListConfigResourcesRequest(resource_types=[77])
    cluster.authorize(on_cluster(Operation.DESCRIBE))
    assert cluster.call(list_config_resources, request).error_code == NO_CLUSTER
    cluster.authorize(on_cluster(Operation.DESCRIBE_CONFIGS))
    assert cluster.call(list_config_resources, request).error_code == UnsupportedVersion.code


# --- coordinators and producer ids -----------------------------------------------------------


def coordinators(kind: int, *keys: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys), key=keys[0])


def test_a_coordinator_is_found_for_each_key_that_may_be_described(guarded: Guarded) -> None:
    guarded.allow()
    before = set(guarded.node.image.topics)
    for kind, key in ((0, "g"), (1, "t"), (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0")):
        guarded.ask(coordinators(kind, key))
    assert set(guarded.node.image.topics) == before, "nothing is made for who is refused"
    guarded.allow((Operation.READ, ResourceType.GROUP, "mine"))
    answer = guarded.ask(coordinators(0, "theirs", "mine"))
    assert [(each.key, each.error_code, each.node_id) for each in answer.coordinators] == [
        ("theirs", NO_GROUP, -1),
        ("mine", 0, guarded.node.node_id),
    ]
    answer = guarded.ask(coordinators(1, "mine"))
    assert answer.coordinators[0].error_code == NO_ID, "a group of that name is something else"


@pytest.mark.parametrize("version", [0, 3])
def test_old_versions_tell_of_the_one_key(guarded: Guarded, version: int) -> None:
    guarded.allow()
    answer = guarded.ask(coordinators(0, "theirs"), version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (NO_GROUP, -1, "", -1)


def test_the_state_of_share_groups_is_for_brokers(guarded: Guarded) -> None:
    guarded.allow((Operation.ALL, ResourceType.GROUP, "*"))
    key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
    assert guarded.ask(coordinators(2, key), 5).coordinators[0].error_code == InvalidRequest.code
    assert guarded.ask(coordinators(2, key)).coordinators[0].error_code == NO_CLUSTER
    assert guarded.ask(coordinators(2, "no key")).coordinators[0].error_code == NO_CLUSTER
    guarded.allow(on_cluster(Operation.CLUSTER_ACTION))
    assert guarded.ask(coordinators(2, key)).coordinators[0].error_code == 0
    assert guarded.ask(coordinators(2, "no key")).coordinators[0].error_code == InvalidRequest.code


@pytest.mark.parametrize(
    ("rights", "code"),
    [
        ((), NO_CLUSTER),
        ((on_cluster(Operation.CLUSTER_ACTION),), NO_CLUSTER),
        (((Operation.READ, ResourceType.TOPIC, "*"),), NO_CLUSTER),
        (((Operation.WRITE, ResourceType.GROUP, "*"),), NO_CLUSTER),
        ((on_cluster(Operation.IDEMPOTENT_WRITE),), 0),
        (((Operation.WRITE, ResourceType.TOPIC, "any"),), 0),
        (((Operation.WRITE, ResourceType.TOPIC, "*"),), 0),
    ],
)
def test_a_producer_id_is_for_who_may_write_at_all(
    cluster: Surroundings, rights: tuple[Right, ...], code: int
) -> None:
    cluster.authorize(*rights)
    answer = cluster.call(init_producer_id, InitProducerIdRequest(transactional_id=None))
    assert answer.error_code == code
    assert (answer.producer_id >= 0) == (code == 0)


def test_who_may_not_is_not_told_that_the_request_is_wrong_as_well(cluster: Surroundings) -> None:
    cluster.authorize(on_cluster(Operation.IDEMPOTENT_WRITE))
    for name, code in (("t", NO_ID), (None, InvalidRequest.code)):
        request = InitProducerIdRequest(transactional_id=name, producer_id=5, producer_epoch=-1)
        answer = cluster.call(init_producer_id, request)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_every_partition_of_a_marker_is_refused(cluster: Surroundings) -> None:
    cluster.create("t", 2)
    cluster.authorize(on_cluster(Operation.DESCRIBE), (Operation.ALL, ResourceType.TOPIC, "t"))
    topics = [WritableTxnMarkerTopic(name="t", partition_indexes=[0, 1])]
    request = WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(producer_id=each, topics=topics) for each in (1, 2)]
    )
    answer = cluster.call(write_txn_markers, request)
    found = [
        (marker.producer_id, partition.partition_index, partition.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    ]
    assert found == [(1, 0, NO_CLUSTER), (1, 1, NO_CLUSTER), (2, 0, NO_CLUSTER), (2, 1, NO_CLUSTER)]
    assert [cluster.partition("t", index).log.end_offset for index in (0, 1)] == [0, 0]
    assert cluster.call(write_txn_markers, WriteTxnMarkersRequest()).markers == []


# --- the cluster -----------------------------------------------------------------------------


def test_everybody_learns_what_is_served_and_where(cluster: Surroundings, guarded: Guarded) -> None:
    guarded.allow()
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    assert guarded.ask(request).api_keys
    cluster.authorize()
    answer = cluster.call(
        describe_cluster, DescribeClusterRequest(include_cluster_authorized_operations=True)
    )
    assert (answer.error_code, len(answer.brokers), answer.cluster_authorized_operations) == (0, 1, 0)
    cluster.authorize(on_cluster(Operation.DESCRIBE))
    answer = cluster.call(
        describe_cluster, DescribeClusterRequest(include_cluster_authorized_operations=True)
    )
    assert answer.cluster_authorized_operations == 1 << Operation.DESCRIBE


@pytest.mark.parametrize(("version", "code"), [(0, 0), (2, 0), (3, NO_CLUSTER), (5, NO_CLUSTER)])
def test_log_directories_are_not_shown_and_versions_that_can_say_why(
    cluster: Surroundings, version: int, code: int
) -> None:
    cluster.create("secret")
    cluster.authorize((Operation.ALL, ResourceType.TOPIC, "secret"))
    answer = cluster.call(describe_log_dirs, DescribeLogDirsRequest(topics=None), version)
    assert answer.results == []
    if version >= 3:
        assert answer.error_code == code


@pytest.mark.parametrize("version", [0, 2])
def test_an_election_is_refused_partition_by_partition(cluster: Surroundings, version: int) -> None:
    cluster.create("t", 2)
    cluster.authorize((Operation.ALTER, ResourceType.TOPIC, "t"))
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0, 1])])
    answer = cluster.call(elect_leaders, request, version)
    if version >= 1:
        assert answer.error_code == NO_CLUSTER
    (topic,) = answer.replica_election_results
    assert [each.error_code for each in topic.partition_result] == [NO_CLUSTER] * 2


def test_the_controller_is_not_asked_for_who_may_not_ask_it(cluster: Surroundings) -> None:
    class Unasked:
        is_active = True

        async def submit(self, request: Any, version: int, caller: Any = None) -> Any:
            raise AssertionError(f"asked for {request}")

    cluster.authorize()
    cluster.quorum = Unasked()
    moved = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0)])
    answer = cluster.call(alter_partition_reassignments, AlterPartitionReassignmentsRequest(topics=[moved]))
    assert answer.error_code == NO_CLUSTER
    assert answer.responses[0].partitions[0].error_code == NO_CLUSTER
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
    answer = cluster.call(update_features, UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert answer.error_code == NO_CLUSTER


def test_a_super_user_needs_no_rule(guarded: Guarded) -> None:
    guarded.allow()
    topic = CreatableTopic(name="roots", num_partitions=1, replication_factor=1)
    assert guarded.as_root(CreateTopicsRequest(topics=[topic])).topics[0].error_code == 0
    (answer,) = guarded.as_root(coordinators(0, "g")).coordinators
    assert answer.error_code == 0
