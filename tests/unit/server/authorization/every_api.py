"""One row or more for each API that is served: a request, and the rights that it takes to have it done.

The names in the requests are those of things that are there, so that a request which is allowed does what it
says, and one that is not would have had something to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.core.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.protocol.batch import TRANSACTIONAL, Record, write_batch
from ottla.protocol.errors import ClusterAuthorizationFailed, KafkaError, TopicAuthorizationFailed
from ottla.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    alter_configs,
    alter_partition_reassignments,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_share_group_state,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    initialize_share_group_state,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    read_share_group_state,
    read_share_group_state_summary,
    remove_raft_voter,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_share_group_state,
    write_txn_markers,
)
from tests.unit.server.authorization.conftest import Right

TOPIC: Final = "secret"
DOOMED_TOPIC: Final = "doomed"
NEW_TOPIC: Final = "new"
GROUP: Final = "team"
DOOMED_GROUP: Final = "doomed-team"
CONSUMER_GROUP: Final = "crew"
SHARE_GROUP: Final = "sharers"
RESTING_SHARE_GROUP: Final = "former-sharers"
TRANSACTIONAL_ID: Final = "transfer"

TOPIC_CONFIGS: Final = 2
BROKER_CONFIGS: Final = 4
LOGGER_CONFIGS: Final = 8
GROUP_CONFIGS: Final = 32


# Any of these will do.
Rights = tuple[Right, ...]


class Things(NamedTuple):
    """What a request has to name and only the broker knows."""

    topic_id: Uuid
    producer_id: int
    node_id: int


class Row(NamedTuple):
    request: Callable[[Things], Any]
    # One of each.
    needs: tuple[Rights, ...] = ()
    # What refuses it, where that is not the error that goes with the right that is missing.
    error: type[KafkaError] | None = None
    # For what is hidden and not refused: whether the answer shows it.
    shows: Callable[[Any], bool] | None = None
    version: int | None = None
    # What somebody who may do everything asks before, each time.
    before: Callable[[Things], Any] | None = None


def topic(operation: Operation, name: str = TOPIC) -> Rights:
    return ((operation, ResourceType.TOPIC, name),)


def group(operation: Operation, name: str = GROUP) -> Rights:
    return ((operation, ResourceType.GROUP, name),)


def cluster(operation: Operation) -> Rights:
    return ((operation, ResourceType.CLUSTER, CLUSTER_NAME),)


def transactional_id(operation: Operation, name: str = TRANSACTIONAL_ID) -> Rights:
    return ((operation, ResourceType.TRANSACTIONAL_ID, name),)


def batch(attributes: int = 0, producer_id: int = -1, sequence: int = -1) -> bytearray:
    return write_batch(
        [Record(timestamp=1_700_000_000_000, value=b"v")],
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=sequence,
    )


def produced(it: Things, records: bytearray, name: str | None = None) -> produce.ProduceRequest:
    data = [produce.PartitionProduceData(index=0, records=records)]
    return produce.ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[produce.TopicProduceData(topic_id=it.topic_id, partition_data=data)],
    )


def fetched(it: Things, replica_id: int = -1) -> fetch.FetchRequest:
    partitions = [fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    return fetch.FetchRequest(
        replica_state=fetch.ReplicaState(replica_id=replica_id),
        max_bytes=1000,
        session_epoch=-1,
        topics=[fetch.FetchTopic(topic_id=it.topic_id, partitions=partitions)],
    )


def metadata_of(name: str | None) -> metadata.MetadataRequest:
    topics = None if name is None else [metadata.MetadataRequestTopic(name=name)]
    return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=True)


def coordinator(kind: int, key: str) -> find_coordinator.FindCoordinatorRequest:
    return find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])


def described(kind: int, name: str) -> describe_configs.DescribeConfigsRequest:
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
    return describe_configs.DescribeConfigsRequest(resources=[resource])


def altered(kind: int, name: str, key: str, value: str) -> alter_configs.AlterConfigsRequest:
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[alter_configs.AlterableConfig(name=key, value=value)],
    )
    return alter_configs.AlterConfigsRequest(resources=[resource])


def set_to(
    kind: int, name: str, key: str, value: str, *, validate_only: bool = False
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[incremental_alter_configs.AlterableConfig(name=key, value=value)],
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )


def added(it: Things) -> list[add_partitions_to_txn.AddPartitionsToTxnTopic]:
    return [add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])]


def any_rule() -> dict[str, Any]:
    return {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }


def credential() -> alter_user_scram_credentials.ScramCredentialUpsertion:
    return alter_user_scram_credentials.ScramCredentialUpsertion(
        name="mallory", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
    )


def acknowledged(it: Things) -> share_acknowledge.ShareAcknowledgeRequest:
    batches = [share_acknowledge.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])]
    partitions = [share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)]
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=SHARE_GROUP,
        member_id=str(Uuid(bytes(15) + b"m")),
        share_session_epoch=1,
        topics=[share_acknowledge.AcknowledgeTopic(topic_id=it.topic_id, partitions=partitions)],
    )


def share_fetched(it: Things) -> share_fetch.ShareFetchRequest:
    return share_fetch.ShareFetchRequest(
        group_id=SHARE_GROUP,
        member_id=str(Uuid(bytes(15) + b"m")),
        share_session_epoch=0,
        max_records=1,
        batch_size=1,
        topics=[
            share_fetch.FetchTopic(
                topic_id=it.topic_id, partitions=[share_fetch.FetchPartition(partition_index=0)]
            )
        ],
    )


READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE = Operation.ALTER, Operation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE

ROWS: Final[dict[str, list[Row]]] = {
    "produce": [
        Row(lambda it: produced(it, batch()), (topic(WRITE),)),
        Row(lambda it: produced(it, batch(producer_id=it.producer_id, sequence=0)), (topic(WRITE),)),
        Row(
            lambda it: produced(it, batch(TRANSACTIONAL, it.producer_id, 0), TRANSACTIONAL_ID),
            (transactional_id(WRITE), topic(WRITE)),
        ),
    ],
    "fetch": [
        Row(fetched, (topic(READ),)),
        Row(lambda it: fetched(it, it.node_id), (cluster(CLUSTER_ACTION),), error=TopicAuthorizationFailed),
    ],
    "list_offsets": [
        Row(
            lambda it: list_offsets.ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    list_offsets.ListOffsetsTopic(
                        name=TOPIC,
                        partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)],
                    )
                ],
            ),
            (topic(DESCRIBE),),
        )
    ],
    "metadata": [
        Row(lambda it: metadata_of(TOPIC), (topic(DESCRIBE),)),
        Row(
            lambda it: metadata.MetadataRequest(
                topics=[metadata.MetadataRequestTopic(topic_id=it.topic_id, name=None)]
            ),
            (topic(DESCRIBE),),
        ),
        Row(
            lambda it: metadata_of(None),
            (topic(DESCRIBE),),
            shows=lambda answer: any(each.name == TOPIC for each in answer.topics),
        ),
        Row(
            lambda it: metadata_of("automatic"),
            (topic(DESCRIBE, "automatic"), topic(CREATE, "automatic") + cluster(CREATE)),
        ),
    ],
    "offset_commit": [
        Row(
            lambda it: offset_commit.OffsetCommitRequest(
                group_id=GROUP,
                topics=[
                    offset_commit.OffsetCommitRequestTopic(
                        topic_id=it.topic_id,
                        partitions=[
                            offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                        ],
                    )
                ],
            ),
            (group(READ), topic(READ)),
        )
    ],
    "offset_fetch": [
        Row(
            lambda it: offset_fetch.OffsetFetchRequest(
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id=GROUP,
                        topics=[
                            offset_fetch.OffsetFetchRequestTopics(topic_id=it.topic_id, partition_indexes=[0])
                        ],
                    )
                ]
            ),
            (group(DESCRIBE), topic(DESCRIBE)),
        )
    ],
    "find_coordinator": [
        Row(lambda it: coordinator(0, GROUP), (group(DESCRIBE),)),
        Row(lambda it: coordinator(1, TRANSACTIONAL_ID), (transactional_id(DESCRIBE),)),
        Row(lambda it: coordinator(2, f"{SHARE_GROUP}:{it.topic_id}:0"), (cluster(CLUSTER_ACTION),)),
    ],
    "join_group": [
        Row(
            lambda it: join_group.JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"\0\0")],
            ),
            (group(READ),),
        )
    ],
    "heartbeat": [Row(lambda it: heartbeat.HeartbeatRequest(group_id=GROUP, member_id="m"), (group(READ),))],
    "leave_group": [
        Row(
            lambda it: leave_group.LeaveGroupRequest(
                group_id=GROUP, members=[leave_group.MemberIdentity(member_id="m")]
            ),
            (group(READ),),
        )
    ],
    "sync_group": [
        Row(
            lambda it: sync_group.SyncGroupRequest(
                group_id=GROUP, member_id="m", protocol_type="consumer", protocol_name="range"
            ),
            (group(READ),),
        )
    ],
    "describe_groups": [
        Row(lambda it: describe_groups.DescribeGroupsRequest(groups=[GROUP]), (group(DESCRIBE),))
    ],
    "list_groups": [
        Row(
            lambda it: list_groups.ListGroupsRequest(),
            (group(DESCRIBE) + cluster(DESCRIBE),),
            shows=lambda answer: any(each.group_id == GROUP for each in answer.groups),
        )
    ],
    "sasl_handshake": [Row(lambda it: sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"))],
    "sasl_authenticate": [Row(lambda it: sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"\0a\0b"))],
    "api_versions": [
        Row(
            lambda it: api_versions.ApiVersionsRequest(
                client_software_name="test", client_software_version="1"
            )
        )
    ],
    "create_topics": [
        Row(
            lambda it: create_topics.CreateTopicsRequest(
                topics=[create_topics.CreatableTopic(name=NEW_TOPIC, num_partitions=1, replication_factor=1)]
            ),
            (topic(CREATE, NEW_TOPIC) + cluster(CREATE),),
        )
    ],
    "delete_topics": [
        Row(
            lambda it: delete_topics.DeleteTopicsRequest(
                topics=[delete_topics.DeleteTopicState(name=DOOMED_TOPIC)], timeout_ms=10_000
            ),
            (topic(DELETE, DOOMED_TOPIC) + cluster(DELETE),),
        )
    ],
    "delete_records": [
        Row(
            lambda it: delete_records.DeleteRecordsRequest(
                topics=[
                    delete_records.DeleteRecordsTopic(
                        name=TOPIC,
                        partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=1)],
                    )
                ]
            ),
            (topic(DELETE),),
        )
    ],
    "init_producer_id": [
        Row(
            lambda it: init_producer_id.InitProducerIdRequest(transactional_id=None),
            (cluster(IDEMPOTENT_WRITE) + topic(WRITE),),
            error=ClusterAuthorizationFailed,
        ),
        Row(
            lambda it: init_producer_id.InitProducerIdRequest(
                transactional_id="other", transaction_timeout_ms=10_000
            ),
            (transactional_id(WRITE, "other"),),
        ),
    ],
    "offset_for_leader_epoch": [
        Row(
            lambda it: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                topics=[
                    offset_for_leader_epoch.OffsetForLeaderTopic(
                        topic=TOPIC,
                        partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(leader_epoch=0)],
                    )
                ]
            ),
            (topic(DESCRIBE) + cluster(CLUSTER_ACTION),),
        )
    ],
    "add_partitions_to_txn": [
        Row(
            lambda it: add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=TRANSACTIONAL_ID,
                v3_and_below_producer_id=it.producer_id,
                v3_and_below_topics=added(it),
            ),
            (transactional_id(WRITE), topic(WRITE)),
            version=3,
        ),
        Row(
            lambda it: add_partitions_to_txn.AddPartitionsToTxnRequest(
                transactions=[
                    add_partitions_to_txn.AddPartitionsToTxnTransaction(
                        transactional_id=TRANSACTIONAL_ID, producer_id=it.producer_id, topics=added(it)
                    )
                ]
            ),
            (cluster(CLUSTER_ACTION),),
        ),
    ],
    "add_offsets_to_txn": [
        Row(
            lambda it: add_offsets_to_txn.AddOffsetsToTxnRequest(
                transactional_id=TRANSACTIONAL_ID, producer_id=it.producer_id, group_id=GROUP
            ),
            (transactional_id(WRITE), group(READ)),
        )
    ],
    "end_txn": [
        Row(
            lambda it: end_txn.EndTxnRequest(
                transactional_id=TRANSACTIONAL_ID, producer_id=it.producer_id, committed=True
            ),
            (transactional_id(WRITE),),
        )
    ],
    "write_txn_markers": [
        Row(
            lambda it: write_txn_markers.WriteTxnMarkersRequest(
                markers=[
                    write_txn_markers.WritableTxnMarker(
                        producer_id=it.producer_id,
                        topics=[write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
                    )
                ]
            ),
            (cluster(CLUSTER_ACTION) + cluster(ALTER),),
        )
    ],
    "txn_offset_commit": [
        Row(
            lambda it: txn_offset_commit.TxnOffsetCommitRequest(
                transactional_id=TRANSACTIONAL_ID,
                group_id=GROUP,
                producer_id=it.producer_id,
                topics=[
                    txn_offset_commit.TxnOffsetCommitRequestTopic(
                        name=TOPIC,
                        partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(committed_offset=1)],
                    )
                ],
            ),
            (transactional_id(WRITE), group(READ), topic(READ)),
        )
    ],
    "describe_acls": [Row(lambda it: describe_acls.DescribeAclsRequest(**any_rule()), (cluster(DESCRIBE),))],
    "create_acls": [
        Row(
            lambda it: create_acls.CreateAclsRequest(
                creations=[
                    create_acls.AclCreation(
                        resource_type=ResourceType.TOPIC,
                        resource_name=TOPIC,
                        resource_pattern_type=PatternType.LITERAL,
                        principal="User:mallory",
                        host="*",
                        operation=Operation.ALL,
                        permission_type=Permission.ALLOW,
                    )
                ]
            ),
            (cluster(ALTER),),
        )
    ],
    "delete_acls": [
        Row(
            lambda it: delete_acls.DeleteAclsRequest(filters=[delete_acls.DeleteAclsFilter(**any_rule())]),
            (cluster(ALTER),),
        )
    ],
    "describe_configs": [
        Row(lambda it: described(TOPIC_CONFIGS, TOPIC), (topic(DESCRIBE_CONFIGS),)),
        Row(lambda it: described(BROKER_CONFIGS, str(it.node_id)), (cluster(DESCRIBE_CONFIGS),)),
        Row(lambda it: described(LOGGER_CONFIGS, str(it.node_id)), (cluster(DESCRIBE_CONFIGS),)),
        Row(lambda it: described(GROUP_CONFIGS, GROUP), (group(DESCRIBE_CONFIGS),)),
    ],
    "alter_configs": [
        Row(lambda it: altered(TOPIC_CONFIGS, TOPIC, "retention.ms", "1"), (topic(ALTER_CONFIGS),)),
        Row(
            lambda it: altered(BROKER_CONFIGS, str(it.node_id), "log.retention.ms", "100000000"),
            (cluster(ALTER_CONFIGS),),
        ),
        Row(
            lambda it: altered(GROUP_CONFIGS, GROUP, "consumer.session.timeout.ms", "50000"),
            (group(ALTER_CONFIGS),),
        ),
    ],
    "describe_log_dirs": [
        Row(lambda it: describe_log_dirs.DescribeLogDirsRequest(topics=None), (cluster(DESCRIBE),)),
        Row(
            lambda it: describe_log_dirs.DescribeLogDirsRequest(topics=None),
            (cluster(DESCRIBE),),
            shows=lambda answer: bool(answer.results),
            version=1,
        ),
    ],
    "create_partitions": [
        Row(
            lambda it: create_partitions.CreatePartitionsRequest(
                topics=[create_partitions.CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)]
            ),
            (topic(ALTER),),
        )
    ],
    "delete_groups": [
        Row(
            lambda it: delete_groups.DeleteGroupsRequest(groups_names=[DOOMED_GROUP]),
            (group(DELETE, DOOMED_GROUP),),
        )
    ],
    "elect_leaders": [
        Row(
            lambda it: elect_leaders.ElectLeadersRequest(
                topic_partitions=[elect_leaders.TopicPartitions(topic=TOPIC, partitions=[0])]
            ),
            (cluster(ALTER),),
        )
    ],
    "incremental_alter_configs": [
        Row(lambda it: set_to(TOPIC_CONFIGS, TOPIC, "retention.ms", "1"), (topic(ALTER_CONFIGS),)),
        Row(
            lambda it: set_to(BROKER_CONFIGS, "", "log.retention.ms", "100000000"), (cluster(ALTER_CONFIGS),)
        ),
        Row(
            lambda it: set_to(LOGGER_CONFIGS, str(it.node_id), "root", "WARN", validate_only=True),
            (cluster(ALTER_CONFIGS),),
        ),
        Row(
            lambda it: set_to(GROUP_CONFIGS, GROUP, "consumer.session.timeout.ms", "50000"),
            (group(ALTER_CONFIGS),),
        ),
    ],
    "alter_partition_reassignments": [
        Row(
            lambda it: alter_partition_reassignments.AlterPartitionReassignmentsRequest(
                topics=[
                    alter_partition_reassignments.ReassignableTopic(
                        name=TOPIC,
                        partitions=[alter_partition_reassignments.ReassignablePartition(partition_index=0)],
                    )
                ]
            ),
            (cluster(ALTER),),
        )
    ],
    "list_partition_reassignments": [
        Row(lambda it: list_partition_reassignments.ListPartitionReassignmentsRequest(), (cluster(DESCRIBE),))
    ],
    "offset_delete": [
        Row(
            lambda it: offset_delete.OffsetDeleteRequest(
                group_id=GROUP,
                topics=[
                    offset_delete.OffsetDeleteRequestTopic(
                        name=DOOMED_TOPIC, partitions=[offset_delete.OffsetDeleteRequestPartition()]
                    )
                ],
            ),
            (group(DELETE), topic(READ, DOOMED_TOPIC)),
        )
    ],
    "describe_client_quotas": [
        Row(lambda it: describe_client_quotas.DescribeClientQuotasRequest(), (cluster(DESCRIBE_CONFIGS),))
    ],
    "describe_user_scram_credentials": [
        Row(
            lambda it: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(),
            (cluster(DESCRIBE),),
        )
    ],
    "alter_user_scram_credentials": [
        Row(
            lambda it: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
                upsertions=[credential()]
            ),
            (cluster(ALTER),),
        )
    ],
    "describe_quorum": [
        Row(
            lambda it: describe_quorum.DescribeQuorumRequest(
                topics=[
                    describe_quorum.TopicData(
                        topic_name="__cluster_metadata", partitions=[describe_quorum.PartitionData()]
                    )
                ]
            ),
            (cluster(DESCRIBE),),
        )
    ],
    "update_features": [
        Row(
            lambda it: update_features.UpdateFeaturesRequest(
                feature_updates=[
                    update_features.FeatureUpdateKey(
                        feature="transaction.version", max_version_level=0, upgrade_type=2
                    )
                ]
            ),
            (cluster(ALTER),),
        )
    ],
    "describe_cluster": [
        # Where the brokers are is no secret; what may be done with them is.
        Row(lambda it: describe_cluster.DescribeClusterRequest()),
        Row(
            lambda it: describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True),
            (cluster(DESCRIBE),),
            shows=lambda answer: answer.cluster_authorized_operations != 0,
        ),
    ],
    "describe_producers": [
        Row(
            lambda it: describe_producers.DescribeProducersRequest(
                topics=[describe_producers.TopicRequest(name=TOPIC, partition_indexes=[0])]
            ),
            (topic(READ),),
        )
    ],
    "add_raft_voter": [Row(lambda it: add_raft_voter.AddRaftVoterRequest(voter_id=99), (cluster(ALTER),))],
    "remove_raft_voter": [
        Row(lambda it: remove_raft_voter.RemoveRaftVoterRequest(voter_id=99), (cluster(ALTER),))
    ],
    "unregister_broker": [
        Row(lambda it: unregister_broker.UnregisterBrokerRequest(broker_id=99), (cluster(ALTER),))
    ],
    "describe_transactions": [
        Row(
            lambda it: describe_transactions.DescribeTransactionsRequest(
                transactional_ids=[TRANSACTIONAL_ID]
            ),
            (transactional_id(DESCRIBE),),
        )
    ],
    "list_transactions": [
        Row(
            lambda it: list_transactions.ListTransactionsRequest(),
            (transactional_id(DESCRIBE),),
            shows=lambda answer: bool(answer.transaction_states),
        )
    ],
    "consumer_group_heartbeat": [
        Row(
            lambda it: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=CONSUMER_GROUP,
                member_id="another",
                rebalance_timeout_ms=10_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            ),
            (group(READ, CONSUMER_GROUP), topic(DESCRIBE)),
        )
    ],
    "consumer_group_describe": [
        Row(
            lambda it: consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP]),
            (group(DESCRIBE, CONSUMER_GROUP), topic(DESCRIBE)),
        )
    ],
    "list_config_resources": [
        Row(lambda it: list_config_resources.ListConfigResourcesRequest(), (cluster(DESCRIBE_CONFIGS),))
    ],
    "describe_topic_partitions": [
        Row(
            lambda it: describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=[describe_topic_partitions.TopicRequest(name=TOPIC)]
            ),
            (topic(DESCRIBE),),
        ),
        Row(
            lambda it: describe_topic_partitions.DescribeTopicPartitionsRequest(),
            (topic(DESCRIBE),),
            shows=lambda answer: any(each.name == TOPIC for each in answer.topics),
        ),
    ],
    "share_group_heartbeat": [
        Row(
            lambda it: share_group_heartbeat.ShareGroupHeartbeatRequest(
                group_id=SHARE_GROUP,
                member_id=str(Uuid(bytes(15) + b"n")),
                subscribed_topic_names=[TOPIC],
            ),
            (group(READ, SHARE_GROUP), topic(DESCRIBE)),
        )
    ],
    "share_group_describe": [
        Row(
            lambda it: share_group_describe.ShareGroupDescribeRequest(group_ids=[SHARE_GROUP]),
            (group(DESCRIBE, SHARE_GROUP), topic(DESCRIBE)),
        )
    ],
    "share_fetch": [Row(share_fetched, (group(READ, SHARE_GROUP), topic(READ)))],
    "share_acknowledge": [
        Row(acknowledged, (group(READ, SHARE_GROUP), topic(READ)), before=share_fetched)  # opens a session
    ],
    "initialize_share_group_state": [
        Row(
            lambda it: initialize_share_group_state.InitializeShareGroupStateRequest(
                group_id=SHARE_GROUP,
                topics=[
                    initialize_share_group_state.InitializeStateData(
                        topic_id=it.topic_id,
                        partitions=[initialize_share_group_state.PartitionData(state_epoch=9)],
                    )
                ],
            ),
            (cluster(CLUSTER_ACTION),),
        )
    ],
    "read_share_group_state": [
        Row(
            lambda it: read_share_group_state.ReadShareGroupStateRequest(
                group_id=SHARE_GROUP,
                topics=[
                    read_share_group_state.ReadStateData(
                        topic_id=it.topic_id, partitions=[read_share_group_state.PartitionData()]
                    )
                ],
            ),
            (cluster(CLUSTER_ACTION),),
        )
    ],
    "write_share_group_state": [
        Row(
            lambda it: write_share_group_state.WriteShareGroupStateRequest(
                group_id=SHARE_GROUP,
                topics=[
                    write_share_group_state.WriteStateData(
                        topic_id=it.topic_id, partitions=[write_share_group_state.PartitionData()]
                    )
                ],
            ),
            (cluster(CLUSTER_ACTION),),
        )
    ],
    "delete_share_group_state": [
        Row(
            lambda it: delete_share_group_state.DeleteShareGroupStateRequest(
                group_id=SHARE_GROUP,
                topics=[
                    delete_share_group_state.DeleteStateData(
                        topic_id=it.topic_id, partitions=[delete_share_group_state.PartitionData()]
                    )
                ],
            ),
            (cluster(CLUSTER_ACTION),),
        )
    ],
    "read_share_group_state_summary": [
        Row(
            lambda it: read_share_group_state_summary.ReadShareGroupStateSummaryRequest(
                group_id=SHARE_GROUP,
                topics=[
                    read_share_group_state_summary.ReadStateSummaryData(
                        topic_id=it.topic_id, partitions=[read_share_group_state_summary.PartitionData()]
                    )
                ],
            ),
            (cluster(CLUSTER_ACTION),),
        )
    ],
    "describe_share_group_offsets": [
        Row(
            lambda it: describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
                groups=[
                    describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
                        group_id=RESTING_SHARE_GROUP,
                        topics=[
                            describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
                                topic_name=TOPIC, partitions=[0]
                            )
                        ],
                    )
                ]
            ),
            (group(DESCRIBE, RESTING_SHARE_GROUP), topic(DESCRIBE)),
        )
    ],
    "alter_share_group_offsets": [
        Row(
            lambda it: alter_share_group_offsets.AlterShareGroupOffsetsRequest(
                group_id=RESTING_SHARE_GROUP,
                topics=[
                    alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
                        topic_name=TOPIC,
                        partitions=[
                            alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(start_offset=1)
                        ],
                    )
                ],
            ),
            (group(READ, RESTING_SHARE_GROUP), topic(READ)),
        )
    ],
    "delete_share_group_offsets": [
        Row(
            lambda it: delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
                group_id=RESTING_SHARE_GROUP,
                topics=[delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=TOPIC)],
            ),
            (group(DELETE, RESTING_SHARE_GROUP), topic(READ)),
        )
    ],
}
