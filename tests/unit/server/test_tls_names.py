"""The names in certificates: written as Java writes them, and mapped to principals as Kafka maps them."""

from __future__ import annotations

import ssl

import pytest

from ottla.config.settings import ConfigError
from ottla.server.distinguished_name import subject_of
from ottla.server.ssl_principal import PrincipalMapping
from tests.unit.server.authority import Authority

NAME = "CN=kafka-server1,OU=KAFKA,O=Example,L=Berlin,C=DE"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


# What `X500Principal.getName()` makes of these, as OpenJDK 17 prints it.
@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (
            "/C=DE/ST=Hamburg/L=Hamburg/O=Example, Inc./OU=Kafka/CN=alice",
            r"CN=alice,OU=Kafka,O=Example\, Inc.,L=Hamburg,ST=Hamburg,C=DE",
        ),
        ("/DC=org/DC=example/UID=ada/CN=Ada Lovelace", "CN=Ada Lovelace,UID=ada,DC=example,DC=org"),
        (r'/CN=\ #odd "name" <x>;\\y=z\+w ', r"CN=\ \#odd \"name\" \<x\>\;\\y\=z\+w\ "),
        (
            "/O=Ünï/CN=Zoë+UID=z/emailAddress=a@b.c",
            "1.2.840.113549.1.9.1=#16056140622e63,CN=Zoë+UID=z,O=Ünï",
        ),
        ("/street=Main 1/serialNumber=12/CN=x", "CN=x,2.5.4.5=#13023132,STREET=Main 1"),
        ("/CN=#x", r"CN=\#x"),
        ("/CN=  two  ", r"CN=\ \ two\ \ "),
    ],
)
def test_a_subject_is_written_as_java_writes_it(authority: Authority, subject: str, name: str) -> None:
    pem = authority.issue("somebody", subject).read_text()

    assert subject_of(ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])) == name


def test_half_a_certificate_is_an_error_and_nothing_else(authority: Authority) -> None:
    der = ssl.PEM_cert_to_DER_cert(authority.pem.read_text())

    for end in range(0, len(der), 7):
        with pytest.raises(ValueError, match="early"):
            subject_of(der[:end])


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", NAME),
        ("", NAME),
        ("RULE:^CN=(.*?),OU=.*$/$1/", "kafka-server1"),
        ("RULE:^CN=(.*?),OU=.*$/$1/U", "KAFKA-SERVER1"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L , DEFAULT", "kafka-server1@kafka"),
        ("RULE:^CN=nobody.*$/x/,RULE:^CN=(.*?),.*$/$1-$4/,DEFAULT", "kafka-server1-$4"),
        ("RULE:^CN=(.*?),.*$/$12/", "kafka-server12"),
        ("RULE:^CN=(.*?),.*$/\\$1\\/$1/", "$1/kafka-server1"),
        ("RULE:^cn=(.*?),.*$/$1/,DEFAULT", NAME),
        ("RULE:kafka/x/,DEFAULT", NAME),
    ],
)
def test_rules_make_a_principal_of_a_name(rules: str, principal: str) -> None:
    assert PrincipalMapping(rules).name_of(NAME) == principal


def test_where_no_rule_fits_there_is_no_principal() -> None:
    assert PrincipalMapping("RULE:^CN=x$/y/").name_of(NAME) is None


def test_a_name_that_is_too_long_for_patterns_is_not_held_against_any() -> None:
    name = "CN=a" + ",OU=b" * 200  # what this pattern does not find in there, it looks for for seconds
    rule = "RULE:^CN=(.*?),OU=(.*?),OU=(.*?),OU=(.*?),OU=(.*?),O=(.*?)$/$1/"

    assert PrincipalMapping(rule).name_of(name) is None
    assert PrincipalMapping(f"{rule},DEFAULT").name_of(name) is None
    assert PrincipalMapping("DEFAULT").name_of(name) == name


@pytest.mark.parametrize(
    "rules", ["default", "RULE:^CN=(.*?),OU=.*$/$1", "RULE:(/x/", "RULE:a/b/X", "DEFAULT;DEFAULT", "RULE:a"]
)
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)
