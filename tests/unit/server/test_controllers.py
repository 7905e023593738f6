"""The listener of controllers: what it serves, to whom, and requests that brokers pass on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.core.ids import Uuid
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol import apis, codec
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    NotController,
    PrincipalDeserializationFailure,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnsupportedVersion,
)
from ottla.protocol.headers import read_response_header, request_head, response_header_version
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.protocol.stored.principal import DefaultPrincipalData
from ottla.runtime.forwarding import is_refused
from ottla.server.api import CONTROLLER, SERVED, SERVED_TO_CONTROLLERS
from ottla.server.broker import Broker
from ottla.server.handlers.envelope import FORWARDED

T = TypeVar("T")

WITH_CONTROLLER = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "ottla.durability": "kafka",
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
ALICE = DefaultPrincipalData(type="User", name="alice")


class Node:
    """A node and a connection to its listener of controllers. The loop runs while it is asked something."""

    def __init__(self, runner: asyncio.Runner, properties: dict[str, str]) -> None:
        self.runner = runner
        self.broker = Broker(properties={**WITH_CONTROLLER, **properties})
        self.run(self.broker.start())
        (self.address,) = (each.address for each in self.broker._controller_listeners)

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(story)

    def ask(self, request: Any, response: type[T], version: int | None = None) -> T:
        async def asking() -> T:
            connection = await Connection.open(*self.address)
            try:
                return await connection.ask(request, response, version=version, within=10)
            finally:
                connection.close()

        return self.run(asking())

    def forward(self, request: Any, response: type[T], version: int, who: Any = ALICE) -> T:
        """What a broker hears that passes this on for somebody."""
        answer = self.ask(enveloped(request, version, who), EnvelopeResponse)
        assert not answer.error_code, answer
        key = request.api_key
        data = answer.response_data
        assert data is not None
        header, body = read_response_header(data, 0, len(data), response_header_version(key, version))
        assert header.correlation_id == 77
        return codec.decode(response, version, data, body)


def enveloped(request: Any, version: int, who: Any = ALICE) -> EnvelopeRequest:
    return EnvelopeRequest(
        request_data=request_head(request.api_key, version, 77, "client") + codec.encode(request, version),
        request_principal=b"\x00\x00" + codec.encode(who, 0),
        client_host_address=bytes([10, 0, 0, 7]),
    )


def new_topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1)])


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Node]]:
    with asyncio.Runner() as runner:
        started: dict[frozenset[tuple[str, str]], Node] = {}

        def start(**properties: str) -> Node:
            key = frozenset(properties.items())
            if key not in started:
                started[key] = Node(runner, properties)
            return started[key]

        yield start
        for node in started.values():
            runner.run(node.broker.stop())


@pytest.fixture
def node(start: Callable[..., Node]) -> Node:
    """Everybody may do everything."""
    return start()


@pytest.fixture
def guarded(start: Callable[..., Node]) -> Node:
    """Nobody may do anything, but for `User:root`."""
    return start(**AUTHORIZER)


@pytest.fixture
def trusting(start: Callable[..., Node]) -> Node:
    """Who comes to the listener of controllers may do everything; those they speak for may not."""
    return start(**{**AUTHORIZER, "super.users": "User:root;User:ANONYMOUS"})


def test_each_listener_says_what_it_serves(node: Node) -> None:
    controllers = node.ask(HELLO, ApiVersionsResponse)
    assert {each.api_key for each in controllers.api_keys} == set(SERVED_TO_CONTROLLERS)
    node.address = node.broker.addresses[0]
    brokers = node.ask(HELLO, ApiVersionsResponse)
    (node.address,) = (each.address for each in node.broker._controller_listeners)
    assert {each.api_key for each in brokers.api_keys} == set(SERVED)
    assert not {row.key for row in SERVED.values() if row.listeners == CONTROLLER}


def test_what_is_for_clients_is_not_served_to_controllers(node: Node) -> None:
    with pytest.raises(ClientError, match="closed the connection"):
        node.ask(MetadataRequest(), MetadataResponse, version=9)


def test_a_controller_describes_the_controllers(node: Node) -> None:
    found = node.ask(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse)
    assert (found.controller_id, [each.broker_id for each in found.brokers]) == (1, [1])
    assert found.brokers[0].port == node.address[1]
    assert node.ask(DescribeClusterRequest(endpoint_type=1), DescribeClusterResponse).error_code == 114


def test_the_controller_is_asked_without_an_envelope(node: Node) -> None:
    created = node.ask(new_topic("plain"), CreateTopicsResponse)
    assert [each.error_code for each in created.topics] == [0]
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=node.broker.node.broker_epoch)
    assert not node.ask(beat, BrokerHeartbeatResponse).is_fenced


def test_a_request_in_an_envelope_is_answered_in_one(node: Node) -> None:
    for version in range(8):
        created = node.forward(new_topic(f"forwarded-{version}"), CreateTopicsResponse, version)
        assert [(each.name, each.error_code) for each in created.topics] == [(f"forwarded-{version}", 0)]
    assert len(node.broker.node.image.topics["forwarded-7"].partitions) == 2
    metadata_log = TopicData(topic_name=CLUSTER_METADATA, partitions=[PartitionData(partition_index=0)])
    quorum = node.forward(DescribeQuorumRequest(topics=[metadata_log]), DescribeQuorumResponse, 2)
    assert not quorum.error_code


def test_only_what_is_meant_for_it_is_taken_out_of_an_envelope(node: Node) -> None:
    inner = enveloped(new_topic("inner"), 7)
    for request, version in (
        (MetadataRequest(), 9),
        (BrokerHeartbeatRequest(broker_id=1), 0),
        (HELLO, 3),
        (inner, 0),
    ):
        answer = node.ask(enveloped(request, version), EnvelopeResponse)
        assert answer.error_code == InvalidRequest.code
    assert SERVED_TO_CONTROLLERS.keys() >= FORWARDED


def test_an_envelope_that_cannot_be_read_is_refused(node: Node) -> None:
    good = enveloped(new_topic("never"), 7)
    for changed, error in (
        ({"request_principal": None}, PrincipalDeserializationFailure),
        ({"request_principal": b""}, PrincipalDeserializationFailure),
        ({"request_principal": b"\x00\x05" + good.request_principal[2:]}, PrincipalDeserializationFailure),
        ({"request_principal": b"\x00\x00\xff\xff"}, PrincipalDeserializationFailure),
        ({"client_host_address": b""}, InvalidRequest),
        ({"client_host_address": b"12345"}, InvalidRequest),
        ({"request_data": b""}, UnsupportedVersion),
        ({"request_data": good.request_data[:20]}, UnsupportedVersion),
        ({"request_data": b"\x00\x13\x00\x63" + good.request_data[4:]}, UnsupportedVersion),
    ):
        fields = {name: getattr(good, name) for name in EnvelopeRequest.__slots__}
        answer = node.ask(EnvelopeRequest(**{**fields, **changed}), EnvelopeResponse)
        assert answer.error_code == error.code, changed
    assert "never" not in node.broker.node.image.topics


def test_it_is_the_client_who_needs_the_right(trusting: Node) -> None:
    refused = trusting.forward(new_topic("hers"), CreateTopicsResponse, 7)
    assert [each.error_code for each in refused.topics] == [TopicAuthorizationFailed.code]
    may_create = AclCreation(
        resource_type=2,
        resource_name="hers",
        resource_pattern_type=3,
        principal="User:alice",
        host="10.0.0.7",
        operation=5,
        permission_type=3,
    )
    root = DefaultPrincipalData(type="User", name="root")
    trusting.forward(CreateAclsRequest(creations=[may_create]), CreateAclsResponse, 3, root)
    created = trusting.forward(new_topic("hers"), CreateTopicsResponse, 7)
    assert [each.error_code for each in created.topics] == [0]
    gone = trusting.forward(UnregisterBrokerRequest(broker_id=9), UnregisterBrokerResponse, 0)
    assert gone.error_code == ClusterAuthorizationFailed.code


OF_CONTROLLERS = [row for row in SERVED_TO_CONTROLLERS.values() if row.listeners == CONTROLLER]


@pytest.mark.parametrize("row", [*OF_CONTROLLERS, SERVED_TO_CONTROLLERS[1]], ids=lambda row: row.name)
def test_nobody_speaks_as_a_node_without_the_right_to(guarded: Node, row: Any) -> None:
    api = apis.api(row.key)
    has_error_since = 7 if row.name == "fetch" else row.first
    for version in range(has_error_since, row.last + 1):
        answer: Any = guarded.ask(api.request(), api.response, version=version)
        assert answer.error_code == ClusterAuthorizationFailed.code, version


@pytest.mark.parametrize("row", SERVED_TO_CONTROLLERS.values(), ids=lambda row: row.name)
def test_a_request_that_names_nothing_is_answered(node: Node, row: Any) -> None:
    if row.name.startswith("sasl_"):
        return
    api = apis.api(row.key)
    for version in {row.first, row.last}:
        try:
            answer: Any = node.ask(api.request(), api.response, version=version)
        except ClientError as error:
            assert "closed the connection" in str(error)
            continue
        assert getattr(answer, "error_code", 0) != UnknownServerError.code, answer
    assert node.ask(HELLO, ApiVersionsResponse).api_keys


def test_who_is_not_the_active_controller_says_so(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(node.broker.node.quorum), "is_active", False)
    envelope = node.ask(enveloped(new_topic("never"), 7), EnvelopeResponse)
    assert (envelope.error_code, envelope.response_data) == (NotController.code, None)
    created = node.ask(new_topic("never"), CreateTopicsResponse)
    assert [each.error_code for each in created.topics] == [NotController.code]
    beat = node.ask(BrokerHeartbeatRequest(broker_id=1), BrokerHeartbeatResponse)
    assert beat.error_code == NotController.code


def test_who_ceases_to_be_it_meanwhile_tells_the_broker_and_not_its_client(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(self: object, request: object, version: int) -> object:
        raise NotController

    monkeypatch.setattr("ottla.runtime.active_controller.ActiveController.submit", lose)
    for request, version in ((UnregisterBrokerRequest(broker_id=9), 0), (new_topic("never"), 7)):
        answer = node.ask(enveloped(request, version), EnvelopeResponse)
        assert (answer.error_code, answer.response_data) == (NotController.code, None)


@pytest.mark.parametrize(
    ("response", "is_so"),
    [
        (UnregisterBrokerResponse(error_code=41), True),
        (UnregisterBrokerResponse(error_code=29), False),
        (CreateTopicsResponse(topics=[CreatableTopicResult(error_code=29)]), False),
        (CreateTopicsResponse(topics=[CreatableTopicResult(error_code=each) for each in (29, 41)]), True),
        (CreateTopicsResponse(), False),
        (DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(error_code=41)]), True),
    ],
)
def test_a_refusal_is_found_wherever_it_is(response: Any, is_so: bool) -> None:
    assert is_refused(response) is is_so


def test_a_directory_that_nobody_has_is_no_reason_to_fail(node: Node) -> None:
    """Empty, doubled and unknown entries get their own errors (as CVE-2023-34455 and others taught)."""
    from ottla.protocol.messages import alter_partition, assign_replicas_to_dirs

    epoch = node.broker.node.broker_epoch
    node.ask(new_topic("entries"), CreateTopicsResponse)
    topic_id = node.broker.node.image.topics["entries"].id
    parts = [
        alter_partition.PartitionData(partition_index=index, new_isr_with_epochs=[])
        for index in (0, 0, 7, -1)
    ]
    asked = alter_partition.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=epoch,
        topics=[
            alter_partition.TopicData(topic_id=topic_id, partitions=parts),
            alter_partition.TopicData(topic_id=topic_id, partitions=parts),
            alter_partition.TopicData(topic_id=Uuid(b"x" * 16), partitions=parts),
            alter_partition.TopicData(partitions=[]),
        ],
    )
    altered = node.ask(asked, alter_partition.AlterPartitionResponse)
    assert altered.error_code == 0
    assert UnknownServerError.code not in [p.error_code for t in altered.topics for p in t.partitions]
    somewhere = assign_replicas_to_dirs.DirectoryData(
        id=Uuid(b"y" * 16),
        topics=[
            assign_replicas_to_dirs.TopicData(
                topic_id=topic_id,
                partitions=[assign_replicas_to_dirs.PartitionData(partition_index=i) for i in (0, 0, 9)],
            )
        ],
    )
    assigned = node.ask(
        assign_replicas_to_dirs.AssignReplicasToDirsRequest(
            broker_id=1, broker_epoch=epoch, directories=[somewhere, somewhere]
        ),
        assign_replicas_to_dirs.AssignReplicasToDirsResponse,
    )
    assert assigned.error_code != UnknownServerError.code
