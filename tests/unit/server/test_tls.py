"""Listeners with TLS: certificates of both sides, what is refused at the start, and files that change."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ottla import Broker
from ottla.config.broker import BrokerSettings
from ottla.config.settings import ConfigError
from ottla.protocol.batch import Record, read_records, write_batch
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.server.tls import Tls, make_context
from tests.unit.server.authentication.wire import LOOPS, PLAIN_USERS, Client, broker_on, eventually, frame
from tests.unit.server.authority import Authority, openssl

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("server", "alice"):
        authority.issue(name)
    return authority


def properties(authority: Authority, **changes: str) -> dict[str, str]:
    return {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.home / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.pem),
        **{name.replace("_", "."): value for name, value in changes.items()},
    }


@pytest.fixture(scope="module", params=LOOPS)
def broker(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Broker]:
    secured = properties(
        authority,
        listeners="SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0,BOTH://127.0.0.1:0",
        listener_security_protocol_map="SSL:SSL,MUTUAL:SSL,BOTH:SASL_SSL",
        listener_name_mutual_ssl_client_auth="required",
        sasl_enabled_mechanisms="PLAIN",
        sasl_jaas_config=PLAIN_USERS,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:CN=alice;User:ada;User:ANONYMOUS",
    )
    with broker_on(request.param, secured) as broker:
        yield broker


def create(client: Client, name: str) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    code: int = answer.topics[0].error_code
    return code


def batch(value: bytes) -> bytes:
    return bytes(write_batch([Record(0, 1_700_000_000_000, None, value, [])]))


def produce(topic: str, value: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch(value))]
    return ProduceRequest(
        acks=1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def fetch(topic: str, offset: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 << 20)
    return FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def test_requests_are_served_over_tls(broker: Broker, authority: Authority) -> None:
    with Client(broker.addresses[0], authority.client_context()) as client:
        assert client.is_served()
        session: Any = client.socket
        assert session.version() == "TLSv1.3"


def test_large_batches_go_in_and_out_whole(broker: Broker, authority: Authority) -> None:
    values = [bytes([number]) * (700_000 + number) for number in range(12)]
    with Client(broker.addresses[0], authority.client_context()) as client:
        assert create(client, "large") == 0
        client.send(b"".join(frame(produce("large", value), 9) for value in values))
        for value in values:
            answer = client.answer(produce("large", value), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        found: list[bytes | None] = []
        while len(found) < len(values):
            answer = client.ask(fetch("large", len(found)), 11)
            records = answer.responses[0].partitions[0].records
            assert records is not None
            found += [record.value for record in read_records(records)]
    assert found == values


def test_answers_that_a_client_does_not_read_hold_back_its_requests(
    broker: Broker, authority: Authority
) -> None:
    with Client(broker.addresses[0], authority.client_context()) as client:
        create(client, "pile")
        client.ask(produce("pile", bytes(MEGABYTE - 1000)), 9)
        asked = [frame(fetch("pile", 0), 11)] * 64
        client.send(b"".join(asked))
        for _ in asked:
            assert len(client.reply()) > MEGABYTE - 1000
        assert client.is_served()


def test_many_arrive_at_once_and_speak_at_once(broker: Broker, authority: Authority) -> None:
    context = authority.client_context()
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(broker.addresses[0], context)) for _ in range(40)]
        assert all(client.is_served() for client in clients)


def test_a_certificate_that_is_required_makes_the_principal(broker: Broker, authority: Authority) -> None:
    with Client(broker.addresses[1], authority.client_context(authority.home / "alice.pem")) as alice:
        assert create(alice, "of-alice") == 0
    # The certificate of another name is as good, but has no rights.
    with Client(broker.addresses[1], authority.client_context(authority.home / "server.pem")) as another:
        assert create(another, "of-another") != 0


def test_without_the_certificate_that_is_required_there_is_no_connection(
    broker: Broker, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority(tmp_path, "stranger")
    unknown = authority.client_context(stranger.issue("alice"))
    with caplog.at_level(logging.INFO):
        for context in (authority.client_context(), unknown):
            with (
                pytest.raises((ssl.SSLError, ConnectionError)),
                Client(broker.addresses[1], context) as client,
            ):
                client.is_served()  # in TLS 1.3 a client learns of it when it reads
        eventually(lambda: "peer did not return a certificate" in caplog.text)
        eventually(lambda: "its certificate is not trusted" in caplog.text)


def test_a_name_and_a_password_count_over_tls(broker: Broker, authority: Authority) -> None:
    with Client(broker.addresses[2], authority.client_context()) as ada:
        assert create(ada.log_in(), "of-ada") == 0
    with Client(broker.addresses[2], authority.client_context()) as bob:
        assert create(bob.log_in(b"\0bob\0hidden"), "of-bob") != 0
    with Client(broker.addresses[2], authority.client_context()) as wrong:
        wrong.handshake()
        assert wrong.authenticate(b"\0ada\0wrong").error_code == 58
        assert wrong.is_closed()


@pytest.mark.parametrize(
    "data",
    [b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff", b"GET / HTTP/1.1\r\n\r\n", bytes(100)],
)
def test_who_does_not_speak_tls_costs_one_line(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    with caplog.at_level(logging.INFO), socket.create_connection(broker.addresses[0], timeout=20) as plain:
        plain.sendall(data)
        while plain.recv(4096):  # an alert, perhaps
            pass
        eventually(lambda: "TLS handshake failed client=/127.0.0.1 listener=SSL" in caplog.text)
        with Client(broker.addresses[0], authority.client_context()) as client:
            assert client.is_served()
    assert len([record for record in caplog.records if record.name.startswith("ottla")]) == 1


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01\0\1x"])
def test_a_handshake_that_is_never_finished_ends(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr("ottla.server.arrival.HANDSHAKE_SECONDS", 0.05)
    with caplog.at_level(logging.INFO), socket.create_connection(broker.addresses[0], timeout=20) as silent:
        silent.sendall(data)
        assert silent.recv(1) == b""
        eventually(lambda: "TLS handshake failed" in caplog.text)


def test_handshakes_that_are_not_finished_count_as_connections(authority: Authority) -> None:
    with (
        broker_on("uvloop", properties(authority, max_connections="2")) as broker,
        socket.create_connection(broker.addresses[0]),
        socket.create_connection(broker.addresses[0]),
        pytest.raises((ssl.SSLError, OSError)),
    ):
        Client(broker.addresses[0], authority.client_context())


def test_a_broker_stops_while_hands_are_being_shaken(authority: Authority) -> None:
    with ExitStack() as stack, broker_on("uvloop", properties(authority)) as broker:
        for _ in range(3):
            stack.enter_context(socket.create_connection(broker.addresses[0]))
        client = stack.enter_context(Client(broker.addresses[0], authority.client_context()))
        assert client.is_served()


def is_trusted(broker: Broker, authority: Authority) -> bool:
    try:
        with Client(broker.addresses[0], authority.client_context()) as client:
            return client.is_served()
    except ssl.SSLError:
        return False


@pytest.mark.parametrize("loop", LOOPS)
def test_certificates_that_change_are_used_without_a_restart(
    authority: Authority, tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.server.listener.CERTIFICATES_SECONDS", 0.01)
    keystore = tmp_path / "keystore.pem"
    keystore.write_bytes((authority.home / "server.pem").read_bytes())
    later = Authority(tmp_path, "later")

    secured = properties(authority, ssl_keystore_location=str(keystore))
    with (
        broker_on(loop, secured) as broker,
        Client(broker.addresses[0], authority.client_context()) as before,
    ):
        assert before.is_served()
        keystore.write_text("half a certificate")  # which changes nothing
        keystore.write_bytes(later.issue("server").read_bytes())
        eventually(lambda: is_trusted(broker, later))
        assert before.is_served()


def test_another_keystore_can_be_named_while_the_broker_runs(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ottla.server.listener.CERTIFICATES_SECONDS", 0.01)
    later = Authority(tmp_path, "later")
    location = "listener.name.ssl.ssl.keystore.location"

    def alter(value: str) -> int:
        change = AlterableConfig(name=location, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
        with Client(broker.addresses[1]) as client:
            answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            code: int = answer.responses[0].error_code
            return code

    listeners = "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    with (
        caplog.at_level(logging.ERROR, "ottla.tls"),
        broker_on("uvloop", properties(authority, listeners=listeners)) as broker,
    ):
        assert alter("/nowhere.pem") == 0
        eventually(lambda: "certificates are as before listener=SSL" in caplog.text)
        assert is_trusted(broker, authority)
        assert alter(str(later.issue("server"))) == 0
        eventually(lambda: is_trusted(broker, later))


def test_that_a_certificate_is_required_is_not_altered_while_the_broker_runs(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.server.listener.CERTIFICATES_SECONDS", 0.01)
    later = Authority(tmp_path, "later")
    changes = {
        "ssl.client.auth": "none",
        "listener.name.ssl.ssl.keystore.location": str(later.issue("server")),
    }
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in changes.items()]
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
    secured = properties(
        authority, listeners="SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", ssl_client_auth="required"
    )

    def sees_later(certificate: Path | None) -> bool:
        try:
            with Client(broker.addresses[0], later.client_context(certificate)) as client:
                return client.is_served()
        except (ssl.SSLError, ConnectionError):
            return False

    with broker_on("uvloop", secured) as broker:
        with Client(broker.addresses[1]) as client:
            answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            assert answer.responses[0].error_code == 0
        eventually(lambda: sees_later(authority.home / "alice.pem"))  # so what was altered is known
        assert not sees_later(None)


# --- what is refused at the start ----------------------------------------------------------


def context(authority: Authority, client_auth: str = "none", **changes: Any) -> ssl.SSLContext:
    values = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(authority.home / "server.pem"),
        **changes,
    }
    return make_context(BrokerSettings(**values), client_auth)


def test_certificates_are_not_read_again_because_something_else_has_changed(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(authority.home / "server.pem"),
    }
    tls = Tls("SSL", lambda: (BrokerSettings(**values), "none"))
    first = tls.context

    values["message_max_bytes"] = 17
    (tmp_path / "of-another").write_text("a file, where the broker was started")
    tls.refresh()
    assert tls.context is first
    values["ssl_enabled_protocols"] = ("TLSv1.3",)
    tls.refresh()
    assert tls.context is not first


def test_keys_and_certificates_may_be_in_the_settings_themselves(authority: Authority) -> None:
    key, chain = (authority.home / "server.key").read_text(), (authority.home / "server.crt").read_text()
    for convert in (str, lambda text: " ".join(text.split("\n"))):
        assert context(
            authority,
            "required",
            ssl_keystore_location=None,
            ssl_keystore_key=convert(key),
            ssl_keystore_certificate_chain=convert(chain),
            ssl_truststore_certificates=convert(authority.pem.read_text()),
        ).get_ca_certs()


def test_a_key_may_be_encrypted(authority: Authority) -> None:
    location = str(authority.issue("locked", password="s3same"))

    assert context(authority, ssl_keystore_location=location, ssl_key_password="s3same")
    for wrong in ("other", None):
        with pytest.raises(ConfigError) as refused:
            context(authority, ssl_keystore_location=location, ssl_key_password=wrong)
        assert "cannot be used" in str(refused.value)


def test_old_versions_are_not_offered(authority: Authority) -> None:
    assert context(authority).minimum_version == ssl.TLSVersion.TLSv1_2
    only = context(authority, ssl_enabled_protocols=("TLSv1.3",))
    assert (only.minimum_version, only.maximum_version) == (ssl.TLSVersion.TLSv1_3,) * 2
    for version in ("TLSv1", "TLSv1.1", "SSLv3"):
        with pytest.raises(ConfigError, match="is not offered: set TLSv1"):
            context(authority, ssl_enabled_protocols=("TLSv1.2", version))


def test_cipher_suites_have_the_names_of_java(authority: Authority) -> None:
    made = context(
        authority,
        ssl_cipher_suites=(
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
        ),
    )
    older = {each["name"] for each in made.get_ciphers() if not each["name"].startswith("TLS_")}

    assert older == {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-SHA"}
    assert made.maximum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ssl_keystore_location": None}, "TLS needs a key and a certificate: set ssl.keystore.type=PEM"),
        ({"ssl_keystore_location": "/nowhere.pem"}, "/nowhere.pem cannot be used: No such file"),
        ({"ssl_truststore_location": "/nowhere.pem"}, "/nowhere.pem cannot be used: No such file"),
        ({"ssl_cipher_suites": ("TLS_AES_128_GCM_SHA256",)}, "can be had together only"),
        ({"ssl_cipher_suites": ("TLS_RSA_WITH_NOTHING_SHA",)}, "OpenSSL has none of"),
        ({"client_auth": "required"}, "needs the authority of the clients' certificates"),
        ({"client_auth": "requested"}, "needs the authority of the clients' certificates"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_line(
    authority: Authority, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        context(authority, **changes)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_the_stores_of_java_are_refused_with_what_converts_them(
    authority: Authority, tmp_path: Path, store: str
) -> None:
    pkcs12, jks = tmp_path / "store.p12", tmp_path / "store.jks"
    openssl("pkcs12", "-export", "-in", authority.home / "server.pem", "-out", pkcs12, "-passout", "pass:x")
    jks.write_bytes(b"\xfe\xed\xfe\xed" + bytes(50))

    for path, kind, command in (
        (pkcs12, "PKCS12", "openssl pkcs12 -in"),
        (jks, "JKS", "keytool -importkeystore"),
    ):
        with pytest.raises(ConfigError) as refused:
            context(authority, **{f"ssl_{store}_location": str(path)})
        assert f"ssl.{store}.location is a {kind} store" in str(refused.value)
        assert command in str(refused.value) and f"ssl.{store}.type=PEM" in str(refused.value)


def test_a_broker_with_a_bad_keystore_does_not_start(authority: Authority) -> None:
    broker = Broker(properties=properties(authority, ssl_keystore_location="/nowhere.pem"))
    with pytest.raises(ConfigError, match="cannot be used: No such file"), broker:
        pass
