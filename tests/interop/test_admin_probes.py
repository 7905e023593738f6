"""Metadata and administration, request by request: who is told what, and which mistake has which code."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.interop.batches import batch
from tests.interop.requests import produce, topic_id
from tests.interop.topics import Names, NewTopic, eventually
from tests.interop.wire import Wire

NONE, UNKNOWN_TOPIC, INVALID_TOPIC, TOPIC_EXISTS, INVALID_PARTITIONS = 0, 3, 17, 36, 37
INVALID_REPLICATION_FACTOR, INVALID_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST = 38, 39, 40, 42
ELECTION_NOT_NEEDED, UNKNOWN_TOPIC_ID = 84, 100
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
EVERY_TOPIC_OPERATION, EVERY_CLUSTER_OPERATION, NOT_ASKED = 3576, 8096, -(2**31)
BAD_NAMES = ["", ".", "..", "with space", "with/slash", "ünïcode", "x" * 250]


def create(
    wire: Wire, *topics: dict[str, Any], version: int = 7, validate_only: bool = False
) -> dict[str, Any]:
    defaults = {"num_partitions": 1, "replication_factor": 1}
    response = wire.ask(
        "create_topics",
        version,
        timeout=30_000,
        topics=[defaults | topic for topic in topics],
        validate_only=validate_only,
    )
    return {answer.name: answer for answer in response.topics}


def describe(wire: Wire, kind: int, name: str, *keys: str, version: int = 4, synonyms: bool = False) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys or None}
    response = wire.ask("describe_configs", version, resources=[resource], include_synonyms=synonyms)
    (answer,) = response.results
    return answer


def alter(wire: Wire, name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC) -> int:
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    (answer,) = wire.ask("incremental_alter_configs", 1, resources=[resource]).responses
    return int(answer.error_code)


def value_of(wire: Wire, name: str, key: str) -> str | None:
    (config,) = describe(wire, TOPIC, name, key).configs
    value: str | None = config.value
    return value


class TestMetadata:
    @pytest.mark.parametrize("version", range(14))
    def test_every_version_describes_a_topic(self, wire: Wire, topic: str, version: int) -> None:
        response = wire.ask("metadata", version, topics=[{"name": topic}])
        (broker,) = response.brokers
        (found,) = response.topics
        assert (found.error_code, found.name) == (NONE, topic)
        (partition,) = found.partitions
        assert (partition.error_code, partition.partition_index) == (NONE, 0)
        assert partition.leader_id == broker.node_id
        assert partition.replica_nodes == partition.isr_nodes == (broker.node_id,)
        if version >= 1:
            assert response.controller_id == broker.node_id
        if version >= 7:
            assert partition.leader_epoch == 0

    def test_the_broker_gives_the_address_it_was_reached_at(self, wire: Wire, bootstrap: str) -> None:
        (broker,) = wire.ask("metadata", 12, topics=[]).brokers
        assert f"{broker.host}:{broker.port}" == bootstrap

    def test_no_topics_asked_for_is_not_all_topics(self, wire: Wire, topic: str) -> None:
        assert wire.ask("metadata", 12, topics=[]).topics == ()
        assert topic in {found.name for found in wire.ask("metadata", 12, topics=None).topics}
        assert topic in {found.name for found in wire.ask("metadata", 0, topics=[]).topics}

    def test_an_unknown_name_has_no_id(self, wire: Wire, unique: Names) -> None:
        name = unique("absent")
        response = wire.ask("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False)
        (found,) = response.topics
        assert (found.error_code, found.name, found.topic_id) == (UNKNOWN_TOPIC, name, None)

    def test_a_topic_is_found_by_its_id(self, wire: Wire, topic: str) -> None:
        wanted = topic_id(wire, topic)
        (found,) = wire.ask("metadata", 12, topics=[{"topic_id": wanted, "name": None}]).topics
        assert (found.error_code, found.name, found.topic_id) == (NONE, topic, wanted)

    def test_an_unknown_id_has_no_name(self, wire: Wire) -> None:
        wanted = uuid.uuid4()
        (found,) = wire.ask("metadata", 12, topics=[{"topic_id": wanted, "name": None}]).topics
        assert (found.error_code, found.name, found.topic_id) == (UNKNOWN_TOPIC_ID, None, wanted)

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_an_illegal_name_is_invalid(self, wire: Wire, name: str) -> None:
        (found,) = wire.ask("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=True).topics
        assert found.error_code == INVALID_TOPIC

    def test_asking_for_a_missing_topic_creates_it(self, wire: Wire, unique: Names) -> None:
        name = unique("wished-for")

        def error() -> int:
            (found,) = wire.ask(
                "metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=True
            ).topics
            return int(found.error_code)

        assert error() in (NONE, UNKNOWN_TOPIC), "Apache Kafka answers before the topic is there"
        eventually(lambda: error() == NONE)

    def test_allowed_operations_are_told_when_asked_for(self, wire: Wire, topic: str) -> None:
        asked = {"include_topic_authorized_operations": True}
        (found,) = wire.ask("metadata", 12, topics=[{"name": topic}], **asked).topics
        assert found.topic_authorized_operations == EVERY_TOPIC_OPERATION
        (found,) = wire.ask("metadata", 12, topics=[{"name": topic}]).topics
        assert found.topic_authorized_operations == NOT_ASKED
        response = wire.ask("metadata", 8, topics=[], include_cluster_authorized_operations=True)
        assert response.cluster_authorized_operations == EVERY_CLUSTER_OPERATION

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_the_cluster_describes_itself(self, wire: Wire, bootstrap: str, version: int) -> None:
        metadata = wire.ask("metadata", 12, topics=[])
        response = wire.ask("describe_cluster", version, include_cluster_authorized_operations=True)
        assert response.error_code == NONE
        assert response.cluster_id == metadata.cluster_id
        assert len(response.cluster_id) == 22
        (broker,) = response.brokers
        assert f"{broker.host}:{broker.port}" == bootstrap
        assert response.cluster_authorized_operations == EVERY_CLUSTER_OPERATION

    def test_topic_partitions_are_described_in_pages(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=5)
        first = wire.ask("describe_topic_partitions", 0, topics=[{"name": topic}], response_partition_limit=3)
        (found,) = first.topics
        assert [partition.partition_index for partition in found.partitions] == [0, 1, 2]
        assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == (topic, 3)
        cursor = {"topic_name": topic, "partition_index": 3}
        rest = wire.ask(
            "describe_topic_partitions",
            0,
            topics=[{"name": topic}],
            response_partition_limit=3,
            cursor=cursor,
        )
        (found,) = rest.topics
        assert [partition.partition_index for partition in found.partitions] == [3, 4]
        assert rest.next_cursor is None

    def test_an_unknown_topic_is_described_as_such(self, wire: Wire, unique: Names) -> None:
        name = unique("absent")
        response = wire.ask(
            "describe_topic_partitions", 0, topics=[{"name": name}], response_partition_limit=10
        )
        (found,) = response.topics
        assert (found.error_code, found.name) == (UNKNOWN_TOPIC, name)


class TestCreateTopics:
    @pytest.mark.parametrize("version", range(2, 8))
    def test_every_version_creates(self, wire: Wire, unique: Names, version: int) -> None:
        name = unique("created")
        answer = create(wire, {"name": name, "num_partitions": 3}, version=version)[name]
        assert answer.error_code == NONE
        eventually(lambda: len(wire.ask("metadata", 9, topics=[{"name": name}]).topics[0].partitions) == 3)
        if version >= 5:
            assert (answer.num_partitions, answer.replication_factor) == (3, 1)
            assert {config.name: config.value for config in answer.configs}["retention.ms"] == "604800000"

    def test_defaults_stand_in_for_minus_one(self, wire: Wire, unique: Names) -> None:
        name = unique("defaults")
        answer = create(wire, {"name": name, "num_partitions": -1, "replication_factor": -1})[name]
        assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (NONE, 1, 1)

    @pytest.mark.parametrize(
        ("values", "error"),
        [
            pytest.param({"num_partitions": 0}, INVALID_PARTITIONS, id="no partitions"),
            pytest.param({"num_partitions": -2}, INVALID_PARTITIONS, id="negative partitions"),
            pytest.param(
                {"replication_factor": 7}, INVALID_REPLICATION_FACTOR, id="more replicas than brokers"
            ),
            pytest.param({"replication_factor": 0}, INVALID_REPLICATION_FACTOR, id="no replicas"),
            pytest.param(
                {"configs": [{"name": "no.such", "value": "1"}]}, INVALID_CONFIG, id="unknown config"
            ),
            pytest.param(
                {"configs": [{"name": "segment.bytes", "value": "1000"}]}, INVALID_CONFIG, id="too small"
            ),
            pytest.param(
                {"configs": [{"name": "retention.ms", "value": "soon"}]}, INVALID_CONFIG, id="no number"
            ),
            pytest.param(
                {"configs": [{"name": "cleanup.policy", "value": "burn"}]},
                INVALID_CONFIG,
                id="no such policy",
            ),
            pytest.param(
                {"assignments": [{"partition_index": 0, "broker_ids": [77]}]},
                INVALID_REQUEST,
                id="assignment beside a partition count",
            ),
        ],
    )
    def test_a_topic_that_cannot_be(
        self, wire: Wire, unique: Names, values: dict[str, Any], error: int
    ) -> None:
        name = unique("impossible")
        answer = create(wire, {"name": name} | values)[name]
        assert answer.error_code == error
        assert answer.error_message
        found = wire.ask("metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics
        assert [topic.error_code for topic in found] == [UNKNOWN_TOPIC]

    def test_an_assignment_may_name_the_broker(self, wire: Wire, unique: Names) -> None:
        (broker,) = wire.ask("metadata", 12, topics=[]).brokers
        names = unique("assigned"), unique("assigned")
        counts = {"num_partitions": -1, "replication_factor": -1}
        for name, broker_id, error in zip(
            names, (broker.node_id, 77), (NONE, INVALID_ASSIGNMENT), strict=True
        ):
            assignments = [{"partition_index": number, "broker_ids": [broker_id]} for number in (0, 1)]
            answer = create(wire, {"name": name, "assignments": assignments} | counts)[name]
            assert answer.error_code == error

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_an_illegal_name_is_invalid(self, wire: Wire, name: str) -> None:
        assert create(wire, {"name": name})[name].error_code == INVALID_TOPIC

    def test_a_topic_exists_once(self, wire: Wire, topic: str) -> None:
        assert create(wire, {"name": topic})[topic].error_code == TOPIC_EXISTS

    def test_dots_and_underscores_collide(self, wire: Wire, unique: Names) -> None:
        name = unique("a.b").replace("-", "_")
        assert create(wire, {"name": name})[name].error_code == NONE
        twin = name.replace(".", "_")
        assert create(wire, {"name": twin})[twin].error_code == INVALID_TOPIC

    def test_a_name_given_twice_is_answered_once(self, wire: Wire, unique: Names) -> None:
        name = unique("twice")
        values = {"name": name, "num_partitions": 1, "replication_factor": 1}
        response = wire.ask("create_topics", 7, timeout=1000, topics=[values, values])
        assert [(answer.name, answer.error_code) for answer in response.topics] == [(name, INVALID_REQUEST)]

    def test_validate_only_creates_nothing(self, wire: Wire, unique: Names) -> None:
        name = unique("rehearsed")
        assert create(wire, {"name": name}, validate_only=True)[name].error_code == NONE
        assert create(wire, {"name": name}, validate_only=True)[name].error_code == NONE


class TestDeleteTopics:
    @pytest.mark.parametrize("version", range(1, 6))
    def test_every_version_deletes_by_name(self, wire: Wire, topic: str, unique: Names, version: int) -> None:
        absent = unique("absent")
        response = wire.ask("delete_topics", version, timeout=30_000, topic_names=[topic, absent])
        errors = {answer.name: int(answer.error_code) for answer in response.responses}
        assert errors == {topic: NONE, absent: UNKNOWN_TOPIC}

    def test_a_topic_is_deleted_by_its_id(self, wire: Wire, topic: str) -> None:
        wanted, absent = topic_id(wire, topic), uuid.uuid4()
        topics = [{"topic_id": wanted, "name": None}, {"topic_id": absent, "name": None}]
        response = wire.ask("delete_topics", 6, timeout=30_000, topics=topics)
        errors = {answer.topic_id: int(answer.error_code) for answer in response.responses}
        assert errors == {wanted: NONE, absent: UNKNOWN_TOPIC_ID}

    def test_a_topic_created_again_starts_empty_with_another_id(self, wire: Wire, topic: str) -> None:
        before = topic_id(wire, topic)
        assert produce(wire, topic, batch(b"old")).base_offset == 0
        wire.ask("delete_topics", 6, timeout=30_000, topics=[{"name": topic}])
        eventually(lambda: create(wire, {"name": topic})[topic].error_code == NONE)
        eventually(lambda: produce(wire, topic, batch(b"new")).error_code == NONE)
        assert topic_id(wire, topic) != before


class TestCreatePartitions:
    def grow(self, wire: Wire, topic: str, count: int, validate_only: bool = False) -> int:
        response = wire.ask(
            "create_partitions",
            3,
            topics=[{"name": topic, "count": count, "assignments": None}],
            timeout=30_000,
            validate_only=validate_only,
        )
        (answer,) = response.results
        return int(answer.error_code)

    def count(self, wire: Wire, topic: str) -> int:
        (found,) = wire.ask("metadata", 12, topics=[{"name": topic}]).topics
        return len(found.partitions)

    def test_a_topic_grows(self, wire: Wire, topic: str) -> None:
        assert self.grow(wire, topic, 4) == NONE
        eventually(lambda: self.count(wire, topic) == 4)
        eventually(lambda: produce(wire, topic, batch(), partition=3).error_code == NONE)

    def test_a_topic_never_shrinks(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(partitions=3)
        for count in (2, 3, 0):
            assert self.grow(wire, topic, count) == INVALID_PARTITIONS

    def test_an_unknown_topic_does_not_grow(self, wire: Wire, unique: Names) -> None:
        assert self.grow(wire, unique("absent"), 3) == UNKNOWN_TOPIC

    def test_validate_only_changes_nothing(self, wire: Wire, topic: str) -> None:
        assert self.grow(wire, topic, 4, validate_only=True) == NONE
        assert self.count(wire, topic) == 1


class TestConfigs:
    @pytest.mark.parametrize("version", [1, 2, 3, 4])
    def test_a_topic_describes_its_configs(self, wire: Wire, new_topic: NewTopic, version: int) -> None:
        topic = new_topic(retention_ms=5000)
        found = describe(wire, TOPIC, topic, version=version)
        assert found.error_code == NONE
        configs = {config.name: config for config in found.configs}
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("5000", 1)
        assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == ("1073741824", 5)
        assert configs["cleanup.policy"].value == "delete"
        assert len(configs) == 33
        if version >= 3:
            assert (configs["retention.ms"].config_type, configs["cleanup.policy"].config_type) == (5, 7)

    def test_only_what_was_asked_for_is_described(self, wire: Wire, topic: str) -> None:
        found = describe(wire, TOPIC, topic, "retention.ms", "no.such.config")
        assert [config.name for config in found.configs] == ["retention.ms"]

    def test_synonyms_lead_from_the_topic_to_the_default(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(max_message_bytes=5000)
        (config,) = describe(wire, TOPIC, topic, "max.message.bytes", synonyms=True).configs
        synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]
        assert synonyms == [("max.message.bytes", "5000", 1), ("message.max.bytes", "1048588", 5)]

    def test_the_broker_describes_its_configs(self, wire: Wire) -> None:
        (broker,) = wire.ask("metadata", 12, topics=[]).brokers
        found = describe(wire, BROKER, str(broker.node_id))
        configs = {config.name: config for config in found.configs}
        assert configs["message.max.bytes"].value == "1048588"
        assert configs["node.id"].value == str(broker.node_id)
        assert configs["node.id"].read_only
        assert configs["ssl.keystore.password"].is_sensitive
        assert configs["ssl.keystore.password"].value is None

    @pytest.mark.parametrize(
        ("kind", "name", "error"),
        [
            (TOPIC, "absent-topic", UNKNOWN_TOPIC),
            (BROKER, "777", INVALID_REQUEST),
            (99, "x", INVALID_REQUEST),
        ],
    )
    def test_what_is_not_there_cannot_be_described(
        self, wire: Wire, kind: int, name: str, error: int
    ) -> None:
        assert describe(wire, kind, name).error_code == error

    def test_a_config_is_set_and_taken_back(self, wire: Wire, topic: str) -> None:
        assert alter(wire, topic, ("retention.ms", SET, "1234")) == NONE
        eventually(lambda: value_of(wire, topic, "retention.ms") == "1234")
        assert alter(wire, topic, ("retention.ms", DELETE, None)) == NONE
        eventually(lambda: value_of(wire, topic, "retention.ms") == "604800000")

    def test_a_list_is_added_to_and_taken_from(self, wire: Wire, topic: str) -> None:
        assert alter(wire, topic, ("cleanup.policy", APPEND, "compact")) == NONE
        eventually(lambda: value_of(wire, topic, "cleanup.policy") == "delete,compact")
        assert alter(wire, topic, ("cleanup.policy", SUBTRACT, "delete")) == NONE
        eventually(lambda: value_of(wire, topic, "cleanup.policy") == "compact")

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            pytest.param([("retention.ms", APPEND, "1")], INVALID_CONFIG, id="append to a number"),
            pytest.param([("segment.bytes", SET, "99")], INVALID_CONFIG, id="below the minimum"),
            pytest.param([("no.such.config", SET, "1")], INVALID_CONFIG, id="unknown name"),
            pytest.param([("retention.ms", SET, "x")], INVALID_CONFIG, id="no number"),
            pytest.param(
                [("retention.ms", SET, "1"), ("retention.ms", SET, "2")], INVALID_REQUEST, id="twice"
            ),
            pytest.param([("retention.ms", SET, None)], INVALID_REQUEST, id="set to null"),
        ],
    )
    def test_a_change_that_cannot_be(
        self, wire: Wire, topic: str, changes: list[tuple[str, int, str | None]], error: int
    ) -> None:
        assert alter(wire, topic, *changes) == error
        assert value_of(wire, topic, "retention.ms") == "604800000"

    def test_configs_of_an_unknown_topic_cannot_be_set(self, wire: Wire, unique: Names) -> None:
        assert alter(wire, unique("absent"), ("retention.ms", SET, "1")) == UNKNOWN_TOPIC

    def test_alter_configs_replaces_them_all(self, wire: Wire, new_topic: NewTopic) -> None:
        topic = new_topic(retention_ms=5000, segment_ms=6000)
        configs = [{"name": "max.message.bytes", "value": "7000"}]
        resource = {"resource_type": TOPIC, "resource_name": topic, "configs": configs}
        (answer,) = wire.ask("alter_configs", 2, resources=[resource]).responses
        assert answer.error_code == NONE
        eventually(lambda: value_of(wire, topic, "max.message.bytes") == "7000")
        assert value_of(wire, topic, "retention.ms") == "604800000"
        assert value_of(wire, topic, "segment.ms") == "604800000"

    def test_a_changed_limit_takes_effect(self, wire: Wire, topic: str) -> None:
        assert produce(wire, topic, batch(bytes(5000))).error_code == NONE
        assert alter(wire, topic, ("max.message.bytes", SET, "1000")) == NONE
        eventually(lambda: produce(wire, topic, batch(bytes(5000))).error_code == 10)

    def test_topics_are_listed_as_config_resources(self, wire: Wire, topic: str) -> None:
        response = wire.ask("list_config_resources", 1, resource_types=[TOPIC])
        assert response.error_code == NONE
        assert (topic, TOPIC) in {
            (found.resource_name, found.resource_type) for found in response.config_resources
        }


class TestClusterState:
    @pytest.mark.parametrize("version", range(1, 6))
    def test_log_dirs_tell_the_size_of_a_partition(self, wire: Wire, topic: str, version: int) -> None:
        records = batch(bytes(1000))
        produce(wire, topic, records)
        topics = [{"topic": topic, "partitions": [0]}]
        response = wire.ask("describe_log_dirs", version, topics=topics)
        (result,) = response.results
        assert result.error_code == NONE
        ((partition,),) = [found.partitions for found in result.topics]
        assert (partition.partition_size, partition.offset_lag) == (len(records), 0)
        assert partition.is_future_key is False

    def test_the_metadata_quorum_describes_itself(self, wire: Wire) -> None:
        topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        response = wire.ask("describe_quorum", 2, topics=topics)
        assert response.error_code == NONE
        ((partition,),) = [found.partitions for found in response.topics]
        (voter,) = partition.current_voters
        assert partition.leader_id == voter.replica_id
        assert partition.high_watermark <= voter.log_end_offset
        assert partition.leader_epoch >= 1

    def test_a_leader_that_leads_need_not_be_elected(self, wire: Wire, topic: str) -> None:
        wanted = [{"topic": topic, "partitions": [0, 9]}]
        response = wire.ask("elect_leaders", 2, election_type=0, topic_partitions=wanted, timeout=10_000)
        (results,) = [found.partition_result for found in response.replica_election_results]
        errors = {result.partition_id: int(result.error_code) for result in results}
        assert errors == {0: ELECTION_NOT_NEEDED, 9: UNKNOWN_TOPIC}

    def test_nothing_is_being_reassigned(self, wire: Wire) -> None:
        response = wire.ask("list_partition_reassignments", 0, timeout=1000, topics=None)
        assert (response.error_code, response.topics) == (NONE, ())

    def test_features_are_told_to_new_clients(self, wire: Wire) -> None:
        words = {"client_software_name": "ottla-tests", "client_software_version": "1.0"}
        response = wire.ask("api_versions", 3, **words)
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        supported = {feature.name: feature.max_version for feature in response.supported_features}
        assert levels["metadata.version"] <= supported["metadata.version"]
        assert response.finalized_features_epoch >= 0

    def test_an_unknown_feature_cannot_be_upgraded(self, wire: Wire) -> None:
        update = {"feature": "no.such.feature", "max_version_level": 3, "upgrade_type": 1}
        assert wire.ask("update_features", 1, timeout=1000, feature_updates=[update]).error_code == 95
