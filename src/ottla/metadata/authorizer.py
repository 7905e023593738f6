"""Who may do what, as the access rules in the metadata log say: Kafka's StandardAuthorizer.

A rule that denies wins over any that allows, however general it is and however exact the other. Where no rule
speaks of a principal, it may not; unless `allow.everyone.if.no.acl.found` is set and nothing is said of the
resource at all. Super users are not asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.core.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ottla.core.principal import Principal
from ottla.protocol.stored.metadata import AccessControlEntryRecord

# What is decided again and again, for every request of a client, is remembered for this many questions.
REMEMBERED_MAX: Final = 10_000

# Whoever may do the one may do the others, too. Only what allows implies anything.
_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)),
}


class _Question(NamedTuple):
    principal: Principal
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str


class Authorizer:
    def __init__(self, super_users: Iterable[Principal] = (), *, allow_if_no_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        # By resource type, pattern type and name.
        self._rules: dict[tuple[int, int, str], list[AccessControlEntryRecord]] = {}
        self._remembered: dict[_Question, bool] = {}
        # Grows whenever the rules change: who keeps a decision compares it.
        self.version = 0

    def configure(self, super_users: Iterable[Principal], *, allow_if_no_acl: bool) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._forget()

    def load(self, rules: Iterable[AccessControlEntryRecord]) -> None:
        """Take these rules instead of those from before."""
        self._rules = {}
        for rule in rules:
            key = rule.resource_type, rule.pattern_type, rule.resource_name
            self._rules.setdefault(key, []).append(rule)
        self._forget()

    def _forget(self) -> None:
        self._remembered.clear()
        self.version += 1

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        question = _Question(principal, host, operation, resource_type, name)
        known = self._remembered.get(question)
        if known is None:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            known = self._remembered[question] = self._decide(question)
        return known

    def _decide(self, question: _Question) -> bool:
        allowed = found = False
        for rule in self._about(question.resource_type, question.name):
            found = True
            if _speaks_of(rule, question.principal, question.host):
                if rule.permission_type == Permission.DENY:
                    if rule.operation in (question.operation, Operation.ALL):
                        return False
                elif _includes(rule.operation, question.operation):
                    allowed = True
        return allowed or (self._allow_if_no_acl and not found)

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[AccessControlEntryRecord]:
        """Every rule whose pattern the resource fits."""
        rules = self._rules
        yield from rules.get((resource_type, PatternType.LITERAL, name), ())
        if name != WILDCARD:
            yield from rules.get((resource_type, PatternType.LITERAL, WILDCARD), ())
        for length in range(1, len(name) + 1):
            yield from rules.get((resource_type, PatternType.PREFIXED, name[:length]), ())

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there can be a resource of this type that the principal may do this with."""
        if principal in self._super_users:
            return True
        allowed: list[AccessControlEntryRecord] = []
        denied: set[tuple[int, str]] = set()
        for (kind, _, _), rules in self._rules.items():
            if kind != resource_type:
                continue
            for rule in rules:
                if rule.operation in (operation, Operation.ALL) and _speaks_of(rule, principal, host):
                    if rule.permission_type == Permission.ALLOW:
                        allowed.append(rule)
                    elif (rule.pattern_type, rule.resource_name) == (PatternType.LITERAL, WILDCARD):
                        return False
                    else:
                        denied.add((rule.pattern_type, rule.resource_name))
        if any(not _is_all_denied(rule, denied) for rule in allowed):
            return True
        return self._allow_if_no_acl and self.allows(principal, host, operation, resource_type, "hardcode")


def _speaks_of(rule: AccessControlEntryRecord, principal: Principal, host: str) -> bool:
    return rule.principal in (str(principal), WILDCARD_PRINCIPAL) and rule.host in (host, WILDCARD)


def _includes(allowed: int, wanted: Operation) -> bool:
    return allowed in (wanted, Operation.ALL) or allowed in _IMPLIED_BY.get(wanted, ())


def _is_all_denied(allow: AccessControlEntryRecord, denied: set[tuple[int, str]]) -> bool:
    """Whether a rule that denies covers everything that one allows."""
    name = allow.resource_name
    if allow.pattern_type == PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    if name == WILDCARD and allow.pattern_type == PatternType.LITERAL:
        return False
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
