"""Several nodes in one process: who is asked what by whom, with and without security, together and apart."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.client.connection import Connection
from ottla.client.security import PLAINTEXT, Security
from ottla.core.scram import MIN_ITERATIONS, ScramMechanism, keys, salted_password
from ottla.protocol.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.protocol.stored.metadata import UserScramCredentialRecord
from ottla.server.broker import Broker, StartupError
from tests.unit.server.authority import Authority

# Patient, since all nodes share one loop with the test.
PATIENT = {
    "broker.session.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "300",
    "ottla.durability": "kafka",
}
BOTH = "broker,controller"


def ports(count: int) -> list[int]:
    taken = [socket.socket() for _ in range(count)]
    for each in taken:
        each.bind(("127.0.0.1", 0))
    found = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return found


def given(
    roles: Sequence[str], client: str = "PLAINTEXT", properties: dict[str, str] | None = None
) -> list[dict[str, str]]:
    """The properties of as many nodes as there are roles."""
    free = iter(ports(2 * len(roles)))
    addresses = [(next(free), next(free)) for _ in roles]
    voters = ",".join(
        f"{id}@127.0.0.1:{address[1]}"
        for id, (role, address) in enumerate(zip(roles, addresses, strict=True), 1)
        if "controller" in role
    )
    made = []
    for id, (role, address) in enumerate(zip(roles, addresses, strict=True), 1):
        listeners = []
        if "broker" in role:
            listeners.append(f"{client}://127.0.0.1:{address[0]}")
        if "controller" in role:
            listeners.append(f"CONTROLLER://127.0.0.1:{address[1]}")
        made.append(
            {
                "node.id": str(id),
                "process.roles": role,
                "listeners": ",".join(listeners),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                **PATIENT,
                **(properties or {}),
            }
        )
    return made


@asynccontextmanager
async def running(properties: list[dict[str, str]], **named: Any) -> AsyncIterator[list[Broker]]:
    nodes = [Broker(properties=each, **named) for each in properties]
    try:
        async with asyncio.timeout(30):
            await asyncio.gather(*(node.start() for node in nodes))
        yield nodes
    finally:
        await asyncio.gather(*(node.stop() for node in nodes))


def scram_credential(name: str, password: str) -> UserScramCredentialRecord:
    mechanism, salt = ScramMechanism.SCRAM_SHA_256, b"salt of the test"
    derived = keys(mechanism, salted_password(mechanism, password, salt, MIN_ITERATIONS))
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=derived.stored_key,
        server_key=derived.server_key,
        iterations=MIN_ITERATIONS,
    )


async def ask(node: Broker, request: Any, response: type[Any], security: Security = PLAINTEXT) -> Any:
    connection = await Connection.open(*node.addresses[0], security=security)
    try:
        return await connection.ask(request, response, within=10)
    finally:
        connection.close()


async def create(node: Broker, name: str, replicas: int, security: Security = PLAINTEXT) -> int:
    topic = CreatableTopic(name=name, num_partitions=3, replication_factor=replicas)
    response = await ask(node, CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, security)
    code: int = response.topics[0].error_code
    return code


def test_what_was_asked_of_any_node_counts_there_at_once() -> None:
    async def main() -> None:
        async with running(given([BOTH] * 3)) as nodes:
            assert sum(node.node.quorum.is_active for node in nodes) == 1
            for number, node in enumerate(nodes):
                name = f"topic-{number}"
                assert await create(node, name, 3) == 0
                held = [each for each in node.node.replicas if each.partition.topic == name]
                assert len(held) == 3
                wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
                known = await ask(node, wanted, MetadataResponse)
                assert {(b.host, b.port) for b in known.brokers} == {each.addresses[0] for each in nodes}
                assert {partition.leader_id for partition in known.topics[0].partitions} == {1, 2, 3}
                change = AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=[AlterableConfig(name="retention.ms", config_operation=0, value="7")],
                )
                altered = await ask(
                    node,
                    IncrementalAlterConfigsRequest(resources=[change]),
                    IncrementalAlterConfigsResponse,
                )
                assert [each.error_code for each in altered.responses] == [0]
                assert held[0].log.settings.retention_ms == 7
                gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
                deleted = await ask(node, gone, DeleteTopicsResponse)
                assert [each.error_code for each in deleted.responses] == [0]
                assert name not in node.node.image.topics

    asyncio.run(main())


def test_each_broker_is_configured_by_itself_whoever_decides() -> None:
    async def main() -> None:
        async with running(given([BOTH] * 3)) as nodes:
            for node in nodes:
                resources = [
                    AlterConfigsResource(
                        resource_type=4,
                        resource_name=name,
                        configs=[AlterableConfig(name="message.max.bytes", config_operation=0, value=value)],
                    )
                    for name, value in ((str(node.node.node_id), "20000"), ("", "30000"))
                ]
                request = IncrementalAlterConfigsRequest(resources=resources)
                altered = await ask(node, request, IncrementalAlterConfigsResponse)
                assert [(r.error_code, r.error_message) for r in altered.responses] == [(0, None)] * 2
                assert node.node.settings.message_max_bytes == 20000
                other = AlterConfigsResource(
                    resource_type=4, resource_name=str(node.node.node_id % 3 + 1), configs=[]
                )
                request = IncrementalAlterConfigsRequest(resources=[other])
                refused = await ask(node, request, IncrementalAlterConfigsResponse)
                assert refused.responses[0].error_code == 42

    asyncio.run(main())


def test_every_broker_knows_the_quorum_and_the_others() -> None:
    async def main() -> None:
        async with running(given([BOTH] * 3)) as nodes:
            (leader,) = (node.node.node_id for node in nodes if node.node.quorum.is_active)
            wanted = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
            for node in nodes:
                quorum = await ask(node, DescribeQuorumRequest(topics=[wanted]), DescribeQuorumResponse)
                assert quorum.topics[0].partitions[0].leader_id == leader
                assert len(quorum.topics[0].partitions[0].current_voters) == 3
                cluster = await ask(node, DescribeClusterRequest(), DescribeClusterResponse)
                assert {(b.broker_id, b.port) for b in cluster.brokers} == {
                    (each.node.node_id, each.addresses[0][1]) for each in nodes
                }

    asyncio.run(main())


@pytest.mark.parametrize("roles", [["controller", "broker", "broker"], ["controller"] * 3 + ["broker"] * 2])
def test_brokers_and_controllers_apart(roles: list[str]) -> None:
    async def main() -> None:
        # One controller alone would make up an id, which the brokers could not guess.
        properties = given(roles, properties={"ottla.cluster.id": "AAAAAAAAQACAAAAAAAAAAQ"})
        async with running(properties) as nodes:
            brokers = [node for node in nodes if node.addresses]
            assert len(brokers) == 2
            for number, node in enumerate(brokers):
                assert await create(node, f"topic-{number}", 2) == 0
                assert set(node.node.image.brokers) == {each.node.node_id for each in brokers}
                assert not node.node.quorum.is_active
            for node in nodes:
                if node not in brokers:
                    assert not list(node.node.replicas)

    asyncio.run(main())


def test_a_node_that_goes_hands_over_first() -> None:
    async def main() -> None:
        async with running(given([BOTH] * 3)) as nodes:
            assert await create(nodes[0], "topic", 3) == 0
            going = next(node for node in nodes if node.node.quorum.is_active)
            (other, another) = (node for node in nodes if node is not going)
            id = going.node.node_id
            await going.stop()
            await until(lambda: id not in leaders(other, "topic"))
            await until(lambda: other.node.quorum.is_active or another.node.quorum.is_active)
            assert await create(other, "next", 2) == 0

    asyncio.run(main())


PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="secret" user_node="secret" user_alice="hers";'
)
SASL = {
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": PLAIN,
    "listener.name.controller.plain.sasl.jaas.config": PLAIN,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node",
}


def logged_in(name: str, password: str) -> Security:
    return Security(protocol="SASL_PLAINTEXT", mechanism="PLAIN", username=name, password=password)


def test_nodes_log_in_to_each_other_and_clients_have_their_own_rights_everywhere() -> None:
    async def main() -> None:
        async with running(given([BOTH] * 3, "CLIENTS", SASL)) as nodes:
            for number, node in enumerate(nodes):
                assert await create(node, f"topic-{number}", 3, logged_in("node", "secret")) == 0
                alice = logged_in("alice", "hers")
                assert await create(node, "hers", 3, alice) == TopicAuthorizationFailed.code
                removal = UnregisterBrokerRequest(broker_id=9)
                refused = await ask(node, removal, UnregisterBrokerResponse, alice)
                assert refused.error_code == ClusterAuthorizationFailed.code
            await in_sync(nodes, "topic-0", 3)

    asyncio.run(main())


def test_brokers_log_in_by_scram_with_users_that_the_cluster_begins_with() -> None:
    scram = (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="node" password="secret";'
    )
    properties = {
        **SASL,
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.clients.scram-sha-256.sasl.jaas.config": scram,
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "super.users": "User:node;User:ANONYMOUS",
    }
    users = [scram_credential("node", "secret")]
    client = Security("SASL_PLAINTEXT", "SCRAM-SHA-256", "node", "secret")

    async def main() -> None:
        async with running(given([BOTH] * 3, "CLIENTS", properties), first_users=users) as nodes:
            for number, node in enumerate(nodes):
                assert await create(node, f"topic-{number}", 3, client) == 0
            await in_sync(nodes, "topic-0", 3)

    asyncio.run(main())


def test_a_node_that_does_not_know_the_password_gets_nowhere() -> None:
    wrong = PLAIN.replace('password="secret"', 'password="guessed"')

    async def main() -> None:
        properties = given([BOTH] * 3, "CLIENTS", SASL)
        properties[2]["listener.name.controller.plain.sasl.jaas.config"] = wrong
        nodes = [Broker(properties=each) for each in properties]
        starting = [asyncio.ensure_future(node.start()) for node in nodes]
        await asyncio.wait_for(asyncio.gather(*starting[:2]), 30)
        assert set(nodes[0].node.image.brokers) == {1, 2}
        assert not starting[2].done()
        starting[2].cancel()
        await asyncio.gather(starting[2], return_exceptions=True)
        await asyncio.gather(*(node.stop() for node in nodes))

    asyncio.run(main())


def test_a_node_that_cannot_say_who_it_is_does_not_start() -> None:
    properties = given([BOTH] * 3, "CLIENTS", SASL)[0]
    nameless = PLAIN.replace('username="node" password="secret" ', "")
    properties["listener.name.controller.plain.sasl.jaas.config"] = nameless
    with pytest.raises(StartupError, match="PLAIN needs a name and a password"):
        asyncio.run(Broker(properties=properties).start())


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_nodes_speak_tls(tmp_path: Path, client_auth: str) -> None:
    authority = Authority(tmp_path)
    tls = {
        "listener.security.protocol.map": "CLIENTS:SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "CLIENTS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("node")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.pem),
        "ssl.client.auth": client_auth,
        "ottla.allow.insecure.listeners": "true",
    }
    client = Security(
        protocol="SSL",
        ca_location=str(authority.pem),
        certificate_location=str(authority.home / "node.pem"),
        key_location=str(authority.home / "node.pem"),
    )

    async def main() -> None:
        async with running(given([BOTH] * 3, "CLIENTS", tls)) as nodes:
            for number, node in enumerate(nodes):
                assert await create(node, f"topic-{number}", 3, client) == 0
            await in_sync(nodes, "topic-0", 3)

    asyncio.run(main())


def leaders(node: Broker, topic: str) -> set[int]:
    return {state.leader for state in node.node.image.topics[topic].partitions.values()}


async def in_sync(nodes: list[Broker], topic: str, replicas: int) -> None:
    """Until every leader has heard from its followers over the listener of brokers."""
    await until(
        lambda: all(
            len(state.isr) == replicas
            for node in nodes
            for state in node.node.image.topics[topic].partitions.values()
        )
    )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
