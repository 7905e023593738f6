"""Kafka's security properties: what is understood, and what is refused in words that help."""

from __future__ import annotations

import pickle
import ssl
from pathlib import Path

import pytest

from ottla.client.errors import BadSecurity
from ottla.client.security import PLAINTEXT, Security, is_security_property

CERTIFICATES = Path(__file__).parent / "certificates"
AUTHORITY = str(CERTIFICATES / "authority.pem")
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="p\\"w;d";'


def secured(**properties: str) -> Security:
    return Security.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def test_without_properties_a_connection_is_plain() -> None:
    assert secured() == PLAINTEXT
    assert secured(bootstrap_servers="localhost:9092", acks="all") == PLAINTEXT
    assert PLAINTEXT.ssl_context() is None


def test_name_and_password_come_from_jaas_or_from_librdkafkas_names() -> None:
    by_jaas = secured(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=JAAS)
    by_name = secured(
        security_protocol="sasl_plaintext",
        sasl_mechanisms="plain",
        sasl_username="ada",
        sasl_password='p"w;d',
    )
    assert by_jaas == by_name
    assert (by_jaas.username, by_jaas.password) == ("ada", 'p"w;d')


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.kafka.common.security.scram.ScramLoginModule required username='ada' password='s';",
        "a.b.ScramLoginModule required\n  username=ada\n  password=s ;\n",
        'a.ScramLoginModule required tokenauth=true username=ada password="s";',
    ],
)
def test_jaas_is_read_as_java_reads_it(text: str) -> None:
    found = secured(security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=text)
    assert (found.mechanism, found.username, found.password) == ("SCRAM-SHA-512", "ada", "s")
    assert found.uses_tls and found.uses_sasl


@pytest.mark.parametrize(
    "text", ["", "username=ada password=s;", "a.Module required username=ada", "a required =;"]
)
def test_jaas_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadSecurity, match="should look like"):
        secured(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=text)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"security_protocol": "TLS"}, "SASL_SSL"),
        ({"security_protocol": "SASL_SSL"}, "GSSAPI, the default, is not supported"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, "PLAIN, SCRAM-SHA-256 or SCRAM"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "name and a password"),
        ({"sasl_login_callback_handler_class": "x"}, "sasl.login.callback.handler.class is not supported"),
        (
            {"security_protocol": "SSL", "ssl_truststore_location": "/nowhere/ca.pem"},
            "cannot be read: No such",
        ),
        ({"security_protocol": "SSL", "ssl_truststore_type": "JKS"}, "is a JKS store"),
    ],
)
def test_what_cannot_be_done_is_refused(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(BadSecurity, match=reason):
        secured(**properties)


@pytest.mark.parametrize(("start", "kind"), [(b"\xfe\xed\xfe\xed", "JKS"), (b"\x30\x82\x01\x00", "PKCS12")])
def test_a_java_key_store_is_refused_with_the_way_to_convert_it(
    tmp_path: Path, start: bytes, kind: str
) -> None:
    store = tmp_path / "store"
    store.write_bytes(start + bytes(100))
    with pytest.raises(BadSecurity, match=rf"is a {kind} store.*openssl pkcs12 .*ssl\.truststore\.type=PEM"):
        secured(security_protocol="SSL", ssl_truststore_location=str(store))


def test_what_only_java_has_is_passed_over() -> None:
    found = secured(security_protocol="SSL", ssl_protocol="TLSv1.3", ssl_trustmanager_algorithm="PKIX")
    assert found == Security("SSL")


def test_certificates_come_from_files_or_from_the_properties_themselves() -> None:
    from_files = secured(
        security_protocol="SSL",
        ssl_truststore_type="PEM",
        ssl_truststore_location=AUTHORITY,
        ssl_keystore_location=str(CERTIFICATES / "client-encrypted.pem"),
        ssl_key_password="secret",
    )
    context = from_files.ssl_context()
    assert context is not None and context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    pem = (CERTIFICATES / "client.pem").read_text()
    key, chain = pem.split("-----BEGIN CERTIFICATE", 1)
    from_text = secured(
        security_protocol="SSL",
        ssl_truststore_certificates=(CERTIFICATES / "authority.pem").read_text(),
        ssl_keystore_key=key,
        ssl_keystore_certificate_chain="-----BEGIN CERTIFICATE" + chain,
    )
    assert from_text.ssl_context() is not None


def test_a_key_with_a_wrong_password_is_refused_without_asking_on_the_terminal() -> None:
    for password in ({}, {"ssl_key_password": "wrong"}):
        found = secured(
            security_protocol="SSL",
            ssl_keystore_location=str(CERTIFICATES / "client-encrypted.pem"),
            **password,
        )
        with pytest.raises(BadSecurity, match="cannot be read"):
            found.ssl_context()


def test_the_name_of_the_host_is_not_checked_when_the_algorithm_is_empty() -> None:
    found = secured(security_protocol="SSL", ssl_endpoint_identification_algorithm="")
    context = found.ssl_context()
    assert context is not None and not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_it_can_be_sent_to_another_process_and_does_not_show_its_secrets() -> None:
    found = secured(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=JAAS)
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(pickle.loads(pickle.dumps(found)))
    assert "p" + '"w' not in repr(found)


def test_which_properties_are_about_security() -> None:
    assert all(map(is_security_property, ["security.protocol", "ssl.ca.location", "sasl.username"]))
    assert not any(map(is_security_property, ["bootstrap.servers", "client.id", "group.id"]))
