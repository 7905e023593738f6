"""Access rules and SCRAM users, as the tools of several clients administer them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka import admin as confluent

from kafka import KafkaAdminClient
from kafka import admin as kafka_python
from ottla.core.acl import Operation, PatternType, Permission, ResourceType
from ottla.protocol.stored.metadata import AccessControlEntryRecord, UserScramCredentialRecord
from ottla.runtime.snapshots import find_snapshots, read_snapshot
from tests.interop.cli import Cli
from tests.interop.nodes import new_node
from tests.interop.topics import Names, eventually
from tests.interop.wire import Closed, Wire
from tools.broker_process import BrokerProcess

SECONDS = 30.0
INVALID_REQUEST = 42
SECURITY_DISABLED = 54
RESOURCE_NOT_FOUND = 91
DUPLICATE_RESOURCE = 92

# Everybody on a listener that asks for no name is ANONYMOUS, who may administer these brokers.
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def guarded(referee: bool) -> Iterator[str]:
    """Address of a broker with access rules, shared by the tests of this file."""
    node = new_node(referee, GUARDED)
    try:
        node.start()
        yield node.bootstrap
        node.stop()
    finally:
        node.kill()
        node.remove()


# --- three ways to say the same ------------------------------------------------------------


class Rule(NamedTuple):
    """About topics, for any host."""

    name: str
    pattern: str
    principal: str
    operation: str
    permission: str


class Tool(Protocol):
    def add(self, rule: Rule) -> None: ...
    def rules_for(self, principal: str) -> set[Rule]: ...
    def remove(self, rule: Rule) -> None: ...
    def set_password(self, user: str, mechanism: str, password: str, iterations: int) -> None: ...
    def users(self) -> dict[str, dict[str, int]]: ...
    def remove_user(self, user: str, mechanism: str) -> None: ...


class Confluent:
    """librdkafka's."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = confluent.AdminClient({"bootstrap.servers": bootstrap})

    def add(self, rule: Rule) -> None:
        (future,) = self.admin.create_acls([self._binding(confluent.AclBinding, rule)]).values()
        future.result(SECONDS)

    def rules_for(self, principal: str) -> set[Rule]:
        wanted = confluent.AclBindingFilter(
            confluent.ResourceType.ANY,
            None,
            confluent.ResourcePatternType.ANY,
            principal,
            None,
            confluent.AclOperation.ANY,
            confluent.AclPermissionType.ANY,
        )
        return {
            Rule(
                each.name,
                each.resource_pattern_type.name.lower(),
                each.principal,
                each.operation.name.lower().replace("_", "-"),
                each.permission_type.name.lower(),
            )
            for each in self.admin.describe_acls(wanted).result(SECONDS)
        }

    def remove(self, rule: Rule) -> None:
        (future,) = self.admin.delete_acls([self._binding(confluent.AclBindingFilter, rule)]).values()
        assert len(future.result(SECONDS)) == 1

    def _binding(self, kind: Any, rule: Rule) -> Any:
        return kind(
            confluent.ResourceType.TOPIC,
            rule.name,
            confluent.ResourcePatternType[rule.pattern.upper()],
            rule.principal,
            "*",
            confluent.AclOperation[rule.operation.upper().replace("-", "_")],
            confluent.AclPermissionType[rule.permission.upper()],
        )

    def set_password(self, user: str, mechanism: str, password: str, iterations: int) -> None:
        info = confluent.ScramCredentialInfo(self._mechanism(mechanism), iterations)
        wanted = confluent.UserScramCredentialUpsertion(user, info, password.encode())
        self.admin.alter_user_scram_credentials([wanted])[user].result(SECONDS)

    def users(self) -> dict[str, dict[str, int]]:
        found = self.admin.describe_user_scram_credentials().result(SECONDS)
        return {
            user: {
                each.mechanism.name.replace("_", "-"): each.iterations for each in info.scram_credential_infos
            }
            for user, info in found.items()
        }

    def remove_user(self, user: str, mechanism: str) -> None:
        wanted = confluent.UserScramCredentialDeletion(user, self._mechanism(mechanism))
        self.admin.alter_user_scram_credentials([wanted])[user].result(SECONDS)

    def _mechanism(self, name: str) -> Any:
        return confluent.ScramMechanism[name.replace("-", "_")]


class KafkaPython:
    def __init__(self, bootstrap: str) -> None:
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)

    def add(self, rule: Rule) -> None:
        result = self.admin.create_acls([self._acl(kafka_python.ACL, rule)])
        assert (len(result["succeeded"]), result["failed"]) == (1, [])

    def rules_for(self, principal: str) -> set[Rule]:
        wanted = kafka_python.ACLFilter(
            principal,
            "*",
            kafka_python.ACLOperation.ANY,
            kafka_python.ACLPermissionType.ANY,
            kafka_python.ResourcePatternFilter(
                kafka_python.ResourceType.ANY, None, kafka_python.ACLResourcePatternType.ANY
            ),
        )
        found, error = self.admin.describe_acls(wanted)
        assert error.errno == 0
        return {
            Rule(
                each.resource_pattern.resource_name,
                each.resource_pattern.pattern_type.name.lower(),
                each.principal,
                each.operation.name.lower().replace("_", "-"),
                each.permission_type.name.lower(),
            )
            for each in found
        }

    def remove(self, rule: Rule) -> None:
        ((_, removed, error),) = self.admin.delete_acls([self._acl(kafka_python.ACLFilter, rule)])
        assert (len(removed), error.errno) == (1, 0)

    def _acl(self, kind: Any, rule: Rule) -> Any:
        return kind(
            rule.principal,
            "*",
            kafka_python.ACLOperation[rule.operation.upper().replace("-", "_")],
            kafka_python.ACLPermissionType[rule.permission.upper()],
            kafka_python.ResourcePattern(
                kafka_python.ResourceType.TOPIC,
                rule.name,
                kafka_python.ACLResourcePatternType[rule.pattern.upper()],
            ),
        )

    def set_password(self, user: str, mechanism: str, password: str, iterations: int) -> None:
        wanted = kafka_python.UserScramCredentialUpsertion(
            user, self._mechanism(mechanism), password, iterations=iterations
        )
        assert self.admin.alter_user_scram_credentials([wanted]) == {user: None}

    def users(self) -> dict[str, dict[str, int]]:
        found = self.admin.describe_user_scram_credentials()
        return {
            user: {
                each["mechanism"].name.replace("_", "-"): each["iterations"]
                for each in info["credential_infos"]
            }
            for user, info in found.items()
        }

    def remove_user(self, user: str, mechanism: str) -> None:
        wanted = kafka_python.UserScramCredentialDeletion(user, self._mechanism(mechanism))
        assert self.admin.alter_user_scram_credentials([wanted]) == {user: None}

    def _mechanism(self, name: str) -> Any:
        return kafka_python.ScramMechanism[name.replace("-", "_")]


class CommandLine:
    """`ottla acl` and `ottla user`."""

    def __init__(self, bootstrap: str) -> None:
        self.cli = Cli(bootstrap)

    def add(self, rule: Rule) -> None:
        self.cli("acl", "add", *self._options(rule))

    def rules_for(self, principal: str) -> set[Rule]:
        found = self.cli.json("acl", "list", "--principal", principal)
        return {Rule(*(each[name] for name in Rule._fields)) for each in found}

    def remove(self, rule: Rule) -> None:
        assert "removed 1 rule\n" in self.cli("acl", "remove", *self._options(rule)).out

    def _options(self, rule: Rule) -> list[str]:
        options = [f"--{rule.permission}", rule.principal, "--topic", rule.name, "-o", rule.operation]
        return [*options, "--prefix"] if rule.pattern == "prefixed" else options

    def set_password(self, user: str, mechanism: str, password: str, iterations: int) -> None:
        options = ["--mechanism", mechanism, "--iterations", str(iterations)]
        ran = self.cli("user", "add", user, *options, given=password + "\n")
        assert password not in ran.out + ran.err

    def users(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for each in self.cli.json("user", "list"):
            found.setdefault(each["user"], {})[each["mechanism"]] = each["iterations"]
        return found

    def remove_user(self, user: str, mechanism: str) -> None:
        self.cli("user", "remove", user, "--mechanism", mechanism)


TOOLS = (Confluent, KafkaPython, CommandLine)


@pytest.fixture(scope="module")
def tools(guarded: str) -> Iterator[dict[type, Tool]]:
    python = KafkaPython(guarded)
    yield {Confluent: Confluent(guarded), KafkaPython: python, CommandLine: CommandLine(guarded)}
    python.admin.close()


@pytest.mark.parametrize("maker", TOOLS)
@pytest.mark.parametrize("remover", TOOLS)
def test_rules_made_with_one_client_are_listed_and_removed_with_another(
    tools: dict[type, Tool], unique: Names, maker: type, remover: type
) -> None:
    one, other = tools[maker], tools[remover]
    name, principal = unique("orders"), f"User:{unique('alice')}"
    first = Rule(name, "literal", principal, "read", "allow")
    second = Rule(name, "prefixed", principal, "alter-configs", "deny")
    third = Rule("*", "literal", principal, "all", "deny")
    for rule in (first, second, third, first):  # one that is there already is no error, and no other rule
        one.add(rule)
    for tool in (one, other):
        eventually(lambda tool=tool: tool.rules_for(principal) == {first, second, third})
    other.remove(second)
    for tool in (one, other):
        eventually(lambda tool=tool: tool.rules_for(principal) == {first, third})
    other.remove(first)
    other.remove(third)
    eventually(lambda: one.rules_for(principal) == set())


@pytest.mark.parametrize("maker", TOOLS)
@pytest.mark.parametrize("remover", TOOLS)
def test_users_made_with_one_client_are_listed_and_removed_with_another(
    tools: dict[type, Tool], unique: Names, maker: type, remover: type
) -> None:
    one, other = tools[maker], tools[remover]
    user = unique("alice")
    one.set_password(user, "SCRAM-SHA-256", "a secret", 4096)
    one.set_password(user, "SCRAM-SHA-512", "a secret", 8192)
    both = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}
    for tool in (one, other):
        eventually(lambda tool=tool: tool.users().get(user) == both)
    other.set_password(user, "SCRAM-SHA-256", "another", 5000)
    other.remove_user(user, "SCRAM-SHA-512")
    eventually(lambda: one.users().get(user) == {"SCRAM-SHA-256": 5000})
    other.remove_user(user, "SCRAM-SHA-256")
    eventually(lambda: user not in one.users())


def test_the_shortcuts_of_the_command_line_are_those_of_kafka_acls(guarded: str, unique: Names) -> None:
    cli, principal = Cli(guarded), f"User:{unique('bob')}"
    both = ["--producer", "--consumer", "--topic", "t", "--group", "g", "--transactional-id", "x"]
    cli("acl", "add", "--allow", principal, *both)
    eventually(lambda: len(cli.json("acl", "list", "--principal", principal)) == 7)
    found = {(e["resource"], e["operation"]) for e in cli.json("acl", "list", "--principal", principal)}
    assert found == {
        *(("topic", operation) for operation in ("write", "create", "read", "describe")),
        ("group", "read"),
        ("transactional-id", "write"),
        ("transactional-id", "describe"),
    }
    assert "removed 7 rules" in cli("acl", "remove", "--principal", principal, "--yes").out
    eventually(lambda: cli.json("acl", "list", "--principal", principal) == [])


# --- frame by frame ------------------------------------------------------------------------

CREATION = {
    "resource_type": ResourceType.TOPIC,
    "resource_name": "orders",
    "resource_pattern_type": PatternType.LITERAL,
    "principal": "User:wire",
    "host": "*",
    "operation": Operation.READ,
    "permission_type": Permission.ALLOW,
}
EVERYTHING = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from "
            "the principal name)",
        ),
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 99}, "Invalid patternType UNKNOWN"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": 77}, "Invalid permissionType UNKNOWN"),
    ],
)
def test_a_bad_rule_is_refused_in_kafkas_words(guarded: str, given: dict[str, Any], says: str) -> None:
    with Wire(guarded) as wire:
        (result,) = wire.ask("create_acls", 3, creations=[CREATION | given]).results
    assert (result.error_code, result.error_message) == (INVALID_REQUEST, says)


def test_words_that_are_unknown_cost_the_connection(guarded: str) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("create_acls", {"creations": [CREATION | {"operation": 0}]}),
        ("delete_acls", {"filters": [EVERYTHING | {"permission_type": 0}]}),
        ("describe_acls", EVERYTHING | {"pattern_type_filter": 0}),
    ]
    for api, request in requests:
        with Wire(guarded) as wire, pytest.raises(Closed):
            wire.ask(api, 3, **request)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_filter_may_ask_for_what_applies_to_a_name(guarded: str, unique: Names, version: int) -> None:
    principal = f"User:{unique('wire')}"
    rules = [
        CREATION | {"principal": principal},
        CREATION | {"principal": principal, "resource_name": "ord", "resource_pattern_type": 4},
        CREATION | {"principal": principal, "resource_name": "orders", "resource_pattern_type": 4},
        CREATION | {"principal": principal, "resource_name": "*"},
        CREATION | {"principal": principal, "resource_name": "payments"},
    ]

    def found(**given: Any) -> set[tuple[str, int]]:
        asked = EVERYTHING | {"principal_filter": principal} | given
        resources = wire.ask("describe_acls", version, **asked).resources
        return {(each.resource_name, each.pattern_type) for each in resources}

    with Wire(guarded) as wire:
        results = wire.ask("create_acls", version, creations=rules).results
        assert [(each.error_code, each.error_message) for each in results] == [(0, "")] * 5
        eventually(lambda: len(found()) == 5)
        matching = {("orders", 3), ("orders", 4), ("ord", 4), ("*", 3)}
        assert found(resource_name_filter="orders", pattern_type_filter=2) == matching
        assert found(resource_name_filter="orders") == {("orders", 3), ("orders", 4)}
        assert found(resource_name_filter="orders", pattern_type_filter=4) == {("orders", 4)}
        assert found(resource_type_filter=99) == set()
        filters = [
            EVERYTHING | {"principal_filter": principal},
            EVERYTHING | {"principal_filter": principal, "resource_name_filter": "payments"},
            EVERYTHING | {"operation": 99},
            EVERYTHING | {"resource_type_filter": 99},
        ]
        everything, payments, *refused = wire.ask("delete_acls", version, filters=filters).filter_results
        assert (len(everything.matching_acls), len(payments.matching_acls)) == (5, 1)
        assert [(each.error_code, each.error_message) for each in refused] == [
            (INVALID_REQUEST, "Unknown entryFilter."),
            (INVALID_REQUEST, "Unknown patternFilter."),
        ]
        eventually(lambda: found() == set())


def test_users_are_refused_in_kafkas_words(guarded: str, unique: Names) -> None:
    user = unique("wire")
    good = {"name": user, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"s" * 32}

    with Wire(guarded) as wire:

        def alter(*upsertions: dict[str, Any], gone: tuple[str, ...] = ()) -> dict[str, tuple[int, Any]]:
            response = wire.ask(
                "alter_user_scram_credentials",
                0,
                upsertions=list(upsertions),
                deletions=[{"name": name, "mechanism": 1} for name in gone],
            )
            return {each.user: (each.error_code, each.error_message) for each in response.results}

        twice = "A user credential cannot be altered twice in the same request"
        missing = "Attempt to delete a user credential that does not exist"
        assert alter(good, good | {"mechanism": 2}) == {user: (DUPLICATE_RESOURCE, twice)}
        assert alter(good, gone=(user,)) == {user: (RESOURCE_NOT_FOUND, missing)}
        assert alter(
            good | {"name": "few", "iterations": 4095},
            good | {"name": "many", "iterations": 16385},
            good | {"name": "mechanism", "mechanism": 3},
            good | {"name": ""},
            good,
        ) == {
            "few": (93, "Too few iterations"),
            "many": (93, "Too many iterations"),
            "mechanism": (33, "Unknown SCRAM mechanism"),
            "": (93, "Username must not be empty"),
            user: (0, None),
        }

        def described() -> dict[str, tuple[int, Any]]:
            users = [{"name": name} for name in (user, "nobody", "twice", "twice")]
            response = wire.ask("describe_user_scram_credentials", 0, users=users)
            return {each.user: (each.error_code, each.error_message) for each in response.results}

        eventually(lambda: described()[user] == (0, ""))
        assert described() == {
            user: (0, ""),
            "nobody": (
                RESOURCE_NOT_FOUND,
                "Attempt to describe a user credential that does not exist: nobody",
            ),
            "twice": (
                DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request: twice",
            ),
        }
        assert alter(gone=(user,)) == {user: (0, None)}


def test_without_an_authorizer_there_are_no_rules(wire: Wire, bootstrap: str) -> None:
    (created,) = wire.ask("create_acls", 3, creations=[CREATION]).results
    (deleted,) = wire.ask("delete_acls", 3, filters=[EVERYTHING]).filter_results
    described = wire.ask("describe_acls", 3, **EVERYTHING)
    assert (created.error_code, created.error_message) == (SECURITY_DISABLED, "No Authorizer is configured.")
    assert (deleted.error_code, deleted.error_message) == (SECURITY_DISABLED, "No Authorizer is configured.")
    assert described.error_code == SECURITY_DISABLED
    assert described.error_message == "No Authorizer is configured on the broker"
    assert "SECURITY_DISABLED" in Cli(bootstrap).fails("acl", "list")


def test_quotas_can_be_asked_for(guarded: str) -> None:
    with Wire(guarded) as wire:
        component = {"entity_type": "user", "match_type": 2, "match": None}
        answer = wire.ask("describe_client_quotas", 1, components=[component], strict=True)
        assert (answer.error_code, answer.entries) == (0, ())
        answer = wire.ask("describe_client_quotas", 1, components=[component, component], strict=False)
        assert (answer.error_code, answer.entries) == (INVALID_REQUEST, None)


# --- what stays ------------------------------------------------------------------------------


def test_rules_and_users_survive_and_are_in_the_snapshot(referee: bool, unique: Names) -> None:
    # Every change is enough for another snapshot.
    node: Any = new_node(referee, GUARDED | {"metadata.log.max.record.bytes.between.snapshots": "1"})
    try:
        node.start()
        tool = CommandLine(node.bootstrap)
        rules = {Rule(f"t{number}", "literal", "User:alice", "read", "allow") for number in range(3)}
        for rule in rules:
            tool.add(rule)
        kept = {rule for rule in rules if rule.name != "t1"}
        tool.set_password("alice", "SCRAM-SHA-512", "a secret", 4096)
        tool.set_password("bob", "SCRAM-SHA-256", "a secret", 4096)
        (gone,) = rules - kept
        eventually(lambda: tool.rules_for("User:alice") == rules and len(tool.users()) == 2)
        tool.remove(gone)
        tool.remove_user("bob", "SCRAM-SHA-256")

        def survived() -> bool:
            users = {"alice": {"SCRAM-SHA-512": 4096}}
            return tool.rules_for("User:alice") == kept and tool.users() == users

        eventually(survived)
        node.kill()
        node.start()
        eventually(survived)
        eventually(lambda: _in_snapshot(node) == ({"t0", "t2"}, {"alice"}))
        node.stop()
        node.start()
        eventually(survived)
    finally:
        node.kill()
        node.remove()


def _in_snapshot(node: Any) -> tuple[set[str], set[str]]:
    directory = node.data_dir / "__cluster_metadata-0"
    latest = find_snapshots(str(directory))[-1]
    records = read_snapshot(str(directory / latest.file_name)).records
    return (
        {each.resource_name for each in records if isinstance(each, AccessControlEntryRecord)},
        {each.name for each in records if isinstance(each, UserScramCredentialRecord)},
    )


# --- from nobody to somebody -----------------------------------------------------------------


class WithPasswords(BrokerProcess):
    """A broker whose only listener asks who is there."""

    def arguments(self) -> list[str]:
        settings = {
            **GUARDED,
            "super.users": "User:admin",
            "listeners": f"SASL_PLAINTEXT://127.0.0.1:{self.port}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        }
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        password = self.home / "password"
        password.write_text("canary,of the admin\n")
        first = ["--add-scram", f"SCRAM-SHA-256=[name=admin,password-file={password}]"]
        return [*self.command, "--data-dir", str(self.data_dir), "--log-level", "debug", *words, *first]


def login(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def test_the_first_user_lets_others_in_and_what_they_may_counts_at_once(tmp_path: Path) -> None:
    with WithPasswords() as broker:
        properties = tmp_path / "admin.properties"
        properties.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="admin" password="canary,of the admin";\n'
        )

        def as_admin(*words: str, given: str = "") -> str:
            start = [sys.executable, "-m", "ottla", "--client-config", str(properties), *words]
            done = subprocess.run(
                [*start, "--bootstrap", broker.bootstrap],
                input=given,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            return done.stdout + done.stderr

        said = as_admin("topic", "create", "orders")
        said += as_admin("user", "add", "bob", "-m", "SCRAM-SHA-512", given="canary of bob\n")
        bob = {"bootstrap.servers": broker.bootstrap, **login("bob", "canary of bob", "SCRAM-SHA-512")}

        def write() -> str | None:
            errors: list[Any] = []
            # A new one each time: librdkafka remembers for a while what it was refused.
            producer = Producer({**bob, "message.timeout.ms": 20_000})
            producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(SECONDS) == 0
            return None if errors[0] is None else errors[0].name()

        assert write() == "TOPIC_AUTHORIZATION_FAILED"
        said += as_admin("acl", "add", "--allow", "User:bob", "--producer", "--topic", "orders")
        assert write() is None
        said += as_admin("acl", "add", "--deny", "User:bob", "-o", "write", "--topic", "ord", "--prefix")
        assert write() == "TOPIC_AUTHORIZATION_FAILED"
        said += as_admin("acl", "remove", "--deny", "User:bob")
        assert write() is None

        said += as_admin("user", "add", "bob", "-m", "SCRAM-SHA-512", given="canary the second\n")
        with pytest.raises(KafkaException):
            confluent.AdminClient(bob).list_topics(timeout=3)
        new = {"bootstrap.servers": broker.bootstrap, **login("bob", "canary the second", "SCRAM-SHA-512")}
        assert "orders" in confluent.AdminClient(new).list_topics(timeout=SECONDS).topics
        said += as_admin("user", "remove", "bob")
        with pytest.raises(KafkaException):
            confluent.AdminClient(new).list_topics(timeout=3)

        broker.restart()
        assert "admin" in as_admin("user", "list")
        assert "canary" not in said + broker.log()
