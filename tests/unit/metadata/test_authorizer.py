from __future__ import annotations

import random
from typing import Any

import pytest

from ottla.core.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.core.principal import parse_principal
from ottla.metadata.authorizer import REMEMBERED_MAX, Authorizer
from ottla.protocol.stored.metadata import AccessControlEntryRecord

ALICE = parse_principal("User:alice")
BOB = parse_principal("User:bob")
HERE, THERE = "10.0.0.1", "10.0.0.2"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def rule(
    permission: Permission,
    operation: Operation,
    name: str,
    pattern: PatternType = LITERAL,
    *,
    kind: ResourceType = TOPIC,
    principal: str = "User:alice",
    host: str = "*",
) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=Uuid(bytes(16)),
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def allow(*given: Any, **more: Any) -> AccessControlEntryRecord:
    return rule(Permission.ALLOW, *given, **more)


def deny(*given: Any, **more: Any) -> AccessControlEntryRecord:
    return rule(Permission.DENY, *given, **more)


def authorizer(*rules: AccessControlEntryRecord, **given: Any) -> Authorizer:
    made = Authorizer([parse_principal("User:root")], **given)
    made.load(rules)
    return made


@pytest.mark.parametrize(
    "pattern", [("orders", LITERAL), ("*", LITERAL), ("ord", PREFIXED), ("orders", PREFIXED)]
)
def test_a_rule_about_a_name_a_prefix_or_everything_allows(pattern: tuple[str, PatternType]) -> None:
    made = authorizer(allow(READ, *pattern))
    assert made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not made.allows(ALICE, HERE, WRITE, TOPIC, "orders")
    assert not made.allows(ALICE, HERE, READ, GROUP, "orders")
    assert not made.allows(BOB, HERE, READ, TOPIC, "orders")


PATTERNS = [("orders", LITERAL), ("*", LITERAL), ("o", PREFIXED), ("orders", PREFIXED)]


@pytest.mark.parametrize("denied", PATTERNS)
@pytest.mark.parametrize("allowed", PATTERNS)
@pytest.mark.parametrize("order", [1, -1])
def test_what_denies_wins_over_what_allows(allowed: Any, denied: Any, order: int) -> None:
    made = authorizer(*[allow(ALL, *allowed), deny(READ, *denied)][::order])
    assert not made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert made.allows(ALICE, HERE, WRITE, TOPIC, "orders")


@pytest.mark.parametrize(("denied", "asked"), [(ALL, READ), (ALL, DESCRIBE), (READ, READ)])
def test_denying_everything_denies_each(denied: Operation, asked: Operation) -> None:
    made = authorizer(allow(ALL, "*"), deny(denied, "orders"))
    assert not made.allows(ALICE, HERE, asked, TOPIC, "orders")
    assert made.allows(ALICE, HERE, asked, TOPIC, "payments")


def test_a_literal_name_is_no_prefix_and_a_prefix_no_part_of_a_name() -> None:
    made = authorizer(allow(READ, "ord"), allow(READ, "ers", PREFIXED))
    assert made.allows(ALICE, HERE, READ, TOPIC, "ord")
    assert not made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert made.allows(ALICE, HERE, READ, TOPIC, "erst")


def test_a_star_as_prefix_is_only_a_letter() -> None:
    made = authorizer(allow(READ, "*", PREFIXED))
    assert not made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert made.allows(ALICE, HERE, READ, TOPIC, "*orders")


def test_rules_may_speak_of_one_host_and_of_everybody() -> None:
    made = authorizer(allow(READ, "orders", host=HERE), allow(WRITE, "orders", principal="User:*"))
    assert made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not made.allows(ALICE, THERE, READ, TOPIC, "orders")
    assert made.allows(BOB, THERE, WRITE, TOPIC, "orders")
    made = authorizer(allow(READ, "orders"), deny(READ, "orders", principal="User:*", host=THERE))
    assert made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not made.allows(ALICE, THERE, READ, TOPIC, "orders")


def test_the_star_among_users_means_everybody_and_no_other_star_does() -> None:
    made = authorizer(allow(READ, "orders", principal="User:*"))
    assert made.allows(parse_principal("Group:alice"), HERE, READ, TOPIC, "orders")
    made = authorizer(allow(READ, "orders", principal="Group:*"))
    assert not made.allows(parse_principal("Group:alice"), HERE, READ, TOPIC, "orders")


IMPLIES = [
    *((each, DESCRIBE) for each in (READ, WRITE, Operation.DELETE, Operation.ALTER)),
    (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
]


@pytest.mark.parametrize(("given", "implied"), IMPLIES)
def test_what_is_allowed_implies_to_describe_and_what_is_denied_implies_nothing(
    given: Operation, implied: Operation
) -> None:
    assert authorizer(allow(given, "orders")).allows(ALICE, HERE, implied, TOPIC, "orders")
    denying = authorizer(allow(implied, "orders"), deny(given, "orders"))
    assert denying.allows(ALICE, HERE, implied, TOPIC, "orders")
    assert not denying.allows(ALICE, HERE, given, TOPIC, "orders")
    assert not authorizer(allow(implied, "orders")).allows(ALICE, HERE, given, TOPIC, "orders")


@pytest.mark.parametrize(
    "given",
    [each for each in Operation if each > ALL and (each, DESCRIBE) not in IMPLIES and each != DESCRIBE],
)
def test_no_other_operation_implies_to_describe(given: Operation) -> None:
    assert not authorizer(allow(given, "orders")).allows(ALICE, HERE, DESCRIBE, TOPIC, "orders")


def test_without_a_rule_nothing_is_allowed() -> None:
    made = authorizer()
    assert not made.allows(ALICE, HERE, DESCRIBE, TOPIC, "orders")
    assert not made.allows(ALICE, HERE, Operation.ALTER, CLUSTER, CLUSTER_NAME)
    assert not made.allows_any(ALICE, HERE, WRITE, TOPIC)


def test_super_users_are_not_asked_about() -> None:
    made = authorizer(deny(ALL, "*", principal="User:*"))
    root = parse_principal("User:root")
    assert made.allows(root, HERE, WRITE, TOPIC, "orders")
    assert made.allows_any(root, HERE, WRITE, TOPIC)
    assert not made.allows(parse_principal("Group:root"), HERE, WRITE, TOPIC, "orders")
    made.configure([ALICE], allow_if_no_acl=False)
    assert not made.allows(root, HERE, WRITE, TOPIC, "orders")
    assert made.allows(ALICE, HERE, WRITE, TOPIC, "orders")


def test_everyone_is_allowed_only_where_no_rule_speaks_of_the_resource() -> None:
    made = authorizer(
        allow(READ, "orders", principal="User:bob"), allow(READ, "pay", PREFIXED), allow_if_no_acl=True
    )
    assert made.allows(ALICE, HERE, WRITE, TOPIC, "clicks")
    assert not made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not made.allows(ALICE, HERE, WRITE, TOPIC, "payments")
    assert made.allows(ALICE, HERE, WRITE, GROUP, "orders")
    assert made.allows_any(ALICE, HERE, WRITE, TOPIC)
    made.load([allow(READ, "*", principal="User:bob")])
    assert not made.allows(ALICE, HERE, READ, TOPIC, "clicks")
    assert not made.allows_any(ALICE, HERE, WRITE, TOPIC)


def test_removing_one_of_three_rules_keeps_two() -> None:
    three = [allow(READ, "orders"), allow(WRITE, "orders"), deny(READ, "orders", principal="User:bob")]
    made = authorizer(*three)
    assert made.allows(ALICE, HERE, WRITE, TOPIC, "orders")
    made.load([three[0], three[2]])
    assert not made.allows(ALICE, HERE, WRITE, TOPIC, "orders")
    assert made.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not made.allows(BOB, HERE, READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([allow(WRITE, "orders")], True),
        ([allow(ALL, "ord", PREFIXED)], True),
        ([allow(READ, "orders")], False),
        ([allow(WRITE, "orders"), deny(WRITE, "orders")], False),
        ([allow(WRITE, "orders"), deny(WRITE, "*")], False),
        ([allow(WRITE, "orders"), deny(WRITE, "o", PREFIXED)], False),
        ([allow(WRITE, "ord", PREFIXED), deny(WRITE, "orders", PREFIXED)], True),
        ([allow(WRITE, "ord", PREFIXED), deny(WRITE, "ord")], True),
        ([allow(WRITE, "ord", PREFIXED), deny(WRITE, "ord", PREFIXED)], False),
        ([allow(WRITE, "*"), deny(WRITE, "o", PREFIXED)], True),
        ([allow(WRITE, "*"), deny(ALL, "*")], False),
        ([allow(WRITE, "*"), deny(WRITE, "hard", PREFIXED)], True),
        ([allow(WRITE, "orders", kind=GROUP)], False),
        ([allow(WRITE, "orders", host=THERE)], False),
        ([allow(WRITE, "orders", principal="User:bob")], False),
        ([allow(WRITE, "orders", principal="User:*"), deny(WRITE, "orders", principal="User:bob")], True),
    ],
)
def test_whether_there_is_anything_to_write_to(rules: list[Any], expected: bool) -> None:
    made = authorizer(*rules)
    assert made.allows_any(ALICE, HERE, WRITE, TOPIC) is expected
    assert made.allows_any(ALICE, HERE, WRITE, TOPIC) is expected
    made.load([])
    assert not made.allows_any(ALICE, HERE, WRITE, TOPIC)


def test_what_is_remembered_is_bounded_in_number_and_in_size() -> None:
    made = authorizer(allow(READ, "a", PREFIXED))
    for number in range(REMEMBERED_MAX + 100):
        assert made.allows(ALICE, HERE, READ, TOPIC, f"a{number}")
    assert len(made._remembered) <= REMEMBERED_MAX
    made.load([allow(READ, "a", PREFIXED)])
    assert made.allows(ALICE, HERE, READ, GROUP, "a" * 32_000) is False
    assert made.allows(ALICE, HERE, READ, TOPIC, "a" * 32_000) is True
    assert not made._remembered


class CountingName(str):
    """A principal that counts how often it is compared with another."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountingName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_rules_for_others_on_the_same_resource_are_not_even_looked_at() -> None:
    rules = [
        allow(READ, name, pattern, principal=CountingName(f"User:{number}"))
        for number in range(1_000)
        for name, pattern in (("*", LITERAL), ("o", PREFIXED), ("orders", LITERAL))
    ]
    authorizer = Authorizer()
    authorizer.load([*rules, allow(READ, "*", principal="User:bob")])
    CountingName.compared = 0
    assert not authorizer.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not authorizer.allows_any(ALICE, HERE, WRITE, TOPIC)
    assert authorizer.allows(BOB, HERE, READ, TOPIC, "orders")
    assert CountingName.compared < 10


def test_rules_that_change_make_the_same_as_all_of_them_read_again() -> None:
    chance = random.Random(5)
    rules: dict[Uuid, AccessControlEntryRecord] = {}
    changing = Authorizer(allow_if_no_acl=True)
    for step in range(300):
        ids = {Uuid(bytes([chance.randrange(25)]) * 16) for _ in range(chance.randrange(1, 4))}
        for number in ids:
            if rules.pop(number, None) is None:
                permission = chance.choice([Permission.ALLOW, Permission.DENY])
                name, pattern = chance.choice(
                    [("a", LITERAL), ("ab", LITERAL), ("a", PREFIXED), ("*", LITERAL)]
                )
                made = rule(
                    permission, READ, name, pattern, principal=chance.choice(["User:alice", "User:*"])
                )
                made.id = number
                rules[number] = made
        before = changing.version
        changing.change(ids, rules)
        whole = Authorizer(allow_if_no_acl=True)
        whole.load(rules.values())
        assert changing.version > before
        for who in (ALICE, BOB):
            for name in ("a", "ab", "b"):
                asked = who, HERE, READ, TOPIC, name
                assert changing.allows(*asked) == whole.allows(*asked), (step, asked)
            assert changing.allows_any(who, HERE, READ, TOPIC) == whole.allows_any(who, HERE, READ, TOPIC)
