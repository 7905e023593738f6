"""Sessions that end: authenticating again on a connection in use, and what happens to those who do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla import Broker
from ottla.protocol.batch import Record, write_batch
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.unit.server.authentication.wire import ADA, BOB, LOOPS, PLAIN_USERS, Client, broker_on, frame

SESSION_MS = 60_000
SECURED = {
    "listeners": "LONG://127.0.0.1:0,SHORT://127.0.0.1:0",
    "listener.security.protocol.map": "LONG:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.jaas.config": PLAIN_USERS,
    "listener.name.long.plain.connections.max.reauth.ms": str(SESSION_MS),
    "listener.name.short.connections.max.reauth.ms": "1",
    "connection.failed.authentication.delay.ms": "1",
}


@pytest.fixture(scope="module", params=LOOPS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with broker_on(request.param, SECURED) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.addresses[0]) as client:
        yield client.log_in()


def ask_until_closed(client: Client, data: bytes) -> None:
    """The session has ended, or is about to: what is asked from then on is not answered."""
    with pytest.raises(ConnectionError):
        while True:
            client.send(data)
            client.reply()


def test_a_client_is_told_how_long_its_session_lasts(broker: Broker) -> None:
    with Client(broker.addresses[0]) as client:
        client.handshake()
        assert client.authenticate().session_lifetime_ms == SESSION_MS


def test_a_client_authenticates_again_on_the_connection_it_uses(client: Client) -> None:
    assert client.is_served()
    assert client.handshake().error_code == 0
    assert client.authenticate().session_lifetime_ms == SESSION_MS
    assert client.is_served()


def test_what_was_asked_before_is_answered_before(client: Client) -> None:
    metadata, handshake = MetadataRequest(topics=[]), SaslHandshakeRequest(mechanism="PLAIN")
    token = SaslAuthenticateRequest(auth_bytes=ADA)
    client.send(frame(metadata, 12) + frame(handshake, 1) + frame(token, 2) + frame(metadata, 12))

    assert client.answer(metadata, 12).brokers
    assert client.answer(handshake, 1).error_code == 0
    assert client.answer(token, 2).error_code == 0
    assert client.answer(metadata, 12).brokers


def test_nobody_becomes_somebody_else(client: Client) -> None:
    client.handshake()
    answer = client.authenticate(BOB)

    assert answer.error_code == 58
    assert answer.error_message == "Cannot change principals during re-authentication from User.ada: User.bob"
    assert client.is_closed()


def test_a_wrong_password_ends_a_session_that_was_good(client: Client) -> None:
    client.handshake()

    assert client.authenticate(b"\0ada\0wrong").error_code == 58
    assert client.is_closed()


def test_the_mechanism_stays(client: Client) -> None:
    assert client.handshake("SCRAM-SHA-512").error_code == 0
    answer = client.authenticate(b"n,,n=ada,r=clientside")

    assert answer.error_code == 58
    assert "is not supported for re-authentication of mechanism 'PLAIN'" in (answer.error_message or "")
    assert client.is_closed()


def test_a_mechanism_that_is_not_enabled_ends_the_connection(client: Client) -> None:
    assert client.handshake("GSSAPI").error_code == 33
    assert client.is_closed()


@pytest.mark.parametrize(
    "data",
    [
        frame(MetadataRequest(topics=[]), 12),
        frame(ApiVersionsRequest(), 0),
        frame(SaslHandshakeRequest(mechanism="PLAIN"), 1),
    ],
)
def test_between_handshake_and_authentication_nothing_else_is_served(client: Client, data: bytes) -> None:
    client.handshake()
    client.send(data)

    assert client.is_closed()


def test_authenticating_again_and_again_is_refused(client: Client) -> None:
    client.log_in()

    assert client.handshake().error_code == 34
    assert client.is_served()


def test_without_a_handshake_there_is_nothing_to_authenticate(client: Client) -> None:
    assert client.authenticate().error_code == 34
    assert client.handshake(version=0).error_code == 34
    assert client.is_served()


@pytest.mark.parametrize("data", [frame(MetadataRequest(topics=[]), 12), frame(ApiVersionsRequest(), 0)])
def test_a_session_that_has_ended_serves_nothing(broker: Broker, data: bytes) -> None:
    with Client(broker.addresses[1]) as client:
        client.log_in()
        ask_until_closed(client, data)


def test_a_producer_in_full_swing_is_stopped_by_the_end_of_its_session(broker: Broker) -> None:
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    with Client(broker.addresses[0]) as client:
        client.log_in().ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    records = write_batch([Record(0, 1_700_000_000_000, None, b"value", [])])
    data = [PartitionProduceData(index=0, records=records)]
    produce = ProduceRequest(
        acks=1, timeout_ms=5000, topic_data=[TopicProduceData(name="orders", partition_data=data)]
    )
    with Client(broker.addresses[1]) as client:
        client.log_in()
        ask_until_closed(client, frame(produce, 9))


def test_a_session_that_has_ended_can_be_renewed(broker: Broker) -> None:
    with Client(broker.addresses[1]) as client:
        client.handshake()
        assert client.authenticate().session_lifetime_ms == 1
        ended = Client(broker.addresses[1]).log_in()
        ask_until_closed(ended, frame(MetadataRequest(topics=[]), 12))  # so the first has ended as well
        ended.socket.close()
        assert client.handshake().error_code == 0
        assert client.authenticate().error_code == 0
