"""Whatever brokers and users do in whatever order, the cluster stays in one piece."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.metadata import framing
from ottla.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from ottla.metadata.snapshot import records
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.unit.metadata.cluster import Cluster

BROKERS = st.integers(1, 4)
TOPICS = st.sampled_from(["a", "b", "c.d"])
INDEX = st.integers(0, 100)


class AnyCommands(RuleBasedStateMachine):
    cluster: Cluster

    @initialize(elr=st.booleans())
    def begin(self, elr: bool) -> None:
        self.cluster = Cluster(elr=elr)
        self.cluster.start(1, 2)
        self.epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
        self.next_producer_id = 0

    # --- brokers -------------------------------------------------------------------------

    @rule(broker=BROKERS, clean=st.booleans())
    def start(self, broker: int, clean: bool) -> None:
        known = self.cluster.image.brokers.get(broker)
        if known is None or known.fenced:
            previous = known.epoch if known is not None and clean else -1
            self.cluster.register(broker, previous_broker_epoch=previous)

    @rule(broker=BROKERS, fence=st.booleans(), leave=st.booleans(), lag=st.integers(0, 3))
    def heartbeat(self, broker: int, fence: bool, leave: bool, lag: int) -> None:
        if broker in self.cluster.image.brokers:
            seen = self.cluster.offset - lag
            self.cluster.heartbeat(
                broker, want_fence=fence, want_shut_down=leave, current_metadata_offset=seen
            )

    @rule(broker=BROKERS)
    def crash(self, broker: int) -> None:
        self.cluster.crash(broker)

    @rule(broker=BROKERS)
    def unregister(self, broker: int) -> None:
        self.cluster.do(UnregisterBrokerRequest(broker_id=broker))

    @rule(broker=BROKERS)
    def allocate(self, broker: int) -> None:
        known = self.cluster.image.brokers.get(broker)
        if known is not None:
            self.cluster.do(AllocateProducerIdsRequest(broker_id=broker, broker_epoch=known.epoch))

    # --- topics --------------------------------------------------------------------------

    @rule(name=TOPICS, partitions=st.integers(1, 3), factor=st.integers(1, 4))
    def create(self, name: str, partitions: int, factor: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
        self.cluster.do(CreateTopicsRequest(topics=[topic]))

    @rule(name=TOPICS)
    def delete(self, name: str) -> None:
        self.cluster.do(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]))

    @rule(name=TOPICS, count=st.integers(1, 5))
    def grow(self, name: str, count: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        self.cluster.do(CreatePartitionsRequest(topics=[topic]))

    @rule(name=st.one_of(TOPICS, st.none()), value=st.integers(1, 3))
    def set_min_isr(self, name: str | None, value: int) -> None:
        change = incremental.AlterableConfig(name="min.insync.replicas", config_operation=0, value=str(value))
        resource = incremental.AlterConfigsResource(
            resource_type=BROKER_RESOURCE if name is None else TOPIC_RESOURCE,
            resource_name=name or "",
            configs=[change],
        )
        self.cluster.do(incremental.IncrementalAlterConfigsRequest(resources=[resource]))

    # --- partitions ----------------------------------------------------------------------

    def any_partition(self, index: int) -> tuple[Any, int, Any]:
        partitions = list(self.cluster.image.partitions())
        return partitions[index % len(partitions)]

    def has_partitions(self) -> bool:
        return any(True for _ in self.cluster.image.partitions())

    @precondition(has_partitions)
    @rule(index=INDEX, members=st.lists(BROKERS, max_size=4), recovering=st.integers(0, 1))
    def alter_isr(self, index: int, members: list[int], recovering: int) -> None:
        topic, number, state = self.any_partition(index)
        leader = self.cluster.image.brokers.get(state.leader)
        if leader is None:
            return
        asked = PartitionData(
            partition_index=number,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            leader_recovery_state=recovering,
            new_isr_with_epochs=[BrokerState(broker_id=broker) for broker in members],
        )
        topics = [TopicData(topic_id=topic.id, partitions=[asked])]
        self.cluster.do(AlterPartitionRequest(broker_id=leader.id, broker_epoch=leader.epoch, topics=topics))

    @rule(kind=st.integers(0, 1))
    def elect(self, kind: int) -> None:
        self.cluster.do(ElectLeadersRequest(election_type=kind, topic_partitions=None))

    @precondition(has_partitions)
    @rule(index=INDEX, wanted=st.one_of(st.none(), st.lists(BROKERS, max_size=3)))
    def move(self, index: int, wanted: list[int] | None) -> None:
        topic, number, _ = self.any_partition(index)
        asked = ReassignablePartition(partition_index=number, replicas=wanted)
        self.cluster.do(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=topic.name, partitions=[asked])]
            )
        )

    # --- rules and users -----------------------------------------------------------------

    @rule(name=TOPICS, operation=st.integers(2, 5), principal=st.sampled_from(["User:a", "User:*", "bad"]))
    def allow(self, name: str, operation: int, principal: str) -> None:
        creation = AclCreation(
            resource_type=2,
            resource_name=name,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=3,
        )
        self.cluster.do(CreateAclsRequest(creations=[creation, creation]))

    @rule(name=st.one_of(TOPICS, st.none()), pattern=st.integers(1, 4))
    def disallow(self, name: str | None, pattern: int) -> None:
        asked = DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        self.cluster.do(DeleteAclsRequest(filters=[asked, asked]))

    @rule(name=st.sampled_from(["alice", "bob"]), mechanism=st.integers(0, 3), is_gone=st.booleans())
    def alter_user(self, name: str, mechanism: int, is_gone: bool) -> None:
        request = AlterUserScramCredentialsRequest()
        if is_gone:
            request.deletions = [ScramCredentialDeletion(name=name, mechanism=mechanism)]
        else:
            wanted = ScramCredentialUpsertion(
                name=name, mechanism=mechanism, iterations=4096, salt=b"s", salted_password=b"p"
            )
            request.upsertions = [wanted]
        self.cluster.do(request)

    # --- what always holds ---------------------------------------------------------------

    @invariant()
    def a_leader_is_in_sync_and_there(self) -> None:
        image = self.cluster.image
        for topic, number, state in image.partitions():
            assert state.leader == -1 or state.leader in state.isr, (topic.name, number, state)
            assert state.leader == -1 or image.is_active(state.leader), (topic.name, number, state)

    @invariant()
    def sets_of_replicas_fit_together(self) -> None:
        for topic, number, state in self.cluster.image.partitions():
            replicas, isr, elr = set(state.replicas), set(state.isr), set(state.elr)
            assert len(replicas) == len(state.replicas) == len(state.directories), (topic.name, number, state)
            assert isr <= replicas, (topic.name, number, state)
            assert not isr & elr, (topic.name, number, state)
            assert state.isr or self.cluster.image.elr_enabled, (topic.name, number, state)

    @invariant()
    def epochs_only_grow(self) -> None:
        for topic, number, state in self.cluster.image.partitions():
            before = self.epochs.get((topic.id, number), (0, 0))
            now = (state.leader_epoch, state.partition_epoch)
            assert now[0] >= before[0], (topic.name, number)
            assert now[1] >= before[1], (topic.name, number)
            self.epochs[topic.id, number] = now

    @invariant()
    def producer_ids_only_grow(self) -> None:
        assert self.cluster.image.next_producer_id >= self.next_producer_id
        self.next_producer_id = self.cluster.image.next_producer_id

    @invariant()
    def no_rule_is_there_twice(self) -> None:
        rules = [
            (rule.resource_name, rule.principal, rule.operation) for rule in self.cluster.image.acls.values()
        ]
        assert len(rules) == len(set(rules))

    @invariant()
    def a_snapshot_tells_the_whole_story(self) -> None:
        image = self.cluster.image
        again = Image()
        for record in records(image):
            again.apply(framing.decode(framing.encode(record, image.metadata_version)), again.offset + 1)
        assert again == image == self.cluster.committed


AnyCommands.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyCommands = AnyCommands.TestCase
