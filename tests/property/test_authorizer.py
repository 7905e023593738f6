"""The authorizer against an oracle that looks at every rule for every question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.acl import Operation, PatternType, Permission, ResourceType
from ottla.core.ids import Uuid
from ottla.core.principal import Principal, parse_principal
from ottla.metadata.authorizer import Authorizer
from ottla.protocol.stored.metadata import AccessControlEntryRecord

SUPER = parse_principal("User:root")
IMPLYING = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def concerns(rule: Any, kind: int, name: str) -> bool:
    is_prefix = rule.pattern_type == PatternType.PREFIXED
    fits = name.startswith(rule.resource_name) if is_prefix else rule.resource_name in (name, "*")
    return rule.resource_type == kind and fits


def speaks_of(rule: Any, principal: Principal, host: str) -> bool:
    return rule.principal in (str(principal), "User:*") and rule.host in (host, "*")


def oracle(
    rules: Sequence[Any], principal: Principal, host: str, operation: int, kind: int, name: str, default: bool
) -> bool:
    if principal == SUPER:
        return True
    about = [rule for rule in rules if concerns(rule, kind, name)]
    if not about:
        return default
    mine = [rule for rule in about if speaks_of(rule, principal, host)]
    if any(r.permission_type == Permission.DENY and r.operation in (operation, Operation.ALL) for r in mine):
        return False
    enough = (operation, Operation.ALL, *IMPLYING.get(Operation(operation), ()))
    return any(r.permission_type == Permission.ALLOW and r.operation in enough for r in mine)


NAMES = st.one_of(
    st.sampled_from(["*", "a", "ab", "abc", "b", "hardcode", "hard"]), st.text("ab*", max_size=4)
)
HOSTS = st.sampled_from(["10.0.0.1", "10.0.0.2"])
USERS = st.sampled_from(["User:alice", "User:bob", "User:ANONYMOUS", "Group:alice", "User:a:b"])
OPERATIONS = st.sampled_from([each for each in Operation if each > Operation.ALL])
KINDS = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
RULES = st.builds(
    AccessControlEntryRecord,
    id=st.binary(min_size=16, max_size=16).map(Uuid),
    resource_type=KINDS,
    resource_name=NAMES.filter(bool),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.one_of(USERS, st.just("User:*")),
    host=st.one_of(HOSTS, st.just("*")),
    operation=st.one_of(OPERATIONS, st.just(Operation.ALL)),
    permission_type=st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
)
QUESTIONS = st.tuples(
    st.one_of(USERS, st.just("User:root")).map(parse_principal), HOSTS, OPERATIONS, KINDS, NAMES
)


@settings(max_examples=400, deadline=None)
@given(st.lists(RULES, max_size=12), st.lists(QUESTIONS, min_size=1, max_size=12), st.booleans())
def test_every_question_is_answered_as_by_looking_at_every_rule(
    rules: list[Any], questions: list[Any], default: bool
) -> None:
    authorizer = Authorizer([SUPER], allow_if_no_acl=default)
    authorizer.load(rules)
    for question in [*questions, *questions]:  # the second time from what is remembered
        assert authorizer.allows(*question) == oracle(rules, *question, default), question


@settings(max_examples=200, deadline=None)
@given(st.lists(RULES, min_size=1, max_size=8), QUESTIONS, st.data())
def test_a_rule_that_is_gone_is_forgotten(rules: list[Any], question: Any, data: st.DataObject) -> None:
    authorizer = Authorizer([SUPER])
    authorizer.load(rules)
    authorizer.allows(*question)
    version = authorizer.version
    left = data.draw(st.permutations(rules))[1:]
    authorizer.load(left)
    assert authorizer.version > version
    assert authorizer.allows(*question) == oracle(left, *question, False)


@settings(max_examples=400, deadline=None)
@given(st.lists(RULES, max_size=12), QUESTIONS)
def test_where_some_resource_may_be_used_it_is_allowed_to_ask(rules: list[Any], question: Any) -> None:
    """`allows_any` errs on neither side, as far as names are spelled with the letters that rules have.

    Kafka gives up on a set of patterns that deny all of an allowed prefix only together, and so do we: that
    is one sided, so what is checked for such an answer is that some rule allows.
    """
    principal, host, operation, kind, _ = question
    authorizer = Authorizer([SUPER])
    authorizer.load(rules)
    allowed = authorizer.allows_any(principal, host, operation, kind)
    patterns = [rule.resource_name for rule in rules]
    names = {*patterns, *(name + "~" for name in patterns), "hardcode", "~"}
    # What is implied counts only for a rule about every name, as in Kafka.
    plain = [rule for rule in rules if rule.operation in (operation, Operation.ALL)]
    if any(oracle(plain, principal, host, operation, kind, name, False) for name in names):
        assert allowed
    elif allowed and principal != SUPER:
        assert any(speaks_of(r, principal, host) and r.permission_type == Permission.ALLOW for r in rules)
