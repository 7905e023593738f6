"""Who may do what, as the access rules in the metadata log say: Kafka's StandardAuthorizer.

A rule that denies wins over any that allows, however general it is and however exact the other. Where no rule
speaks of a principal, it may not; unless `allow.everyone.if.no.acl.found` is set and nothing is said of the
resource at all. Super users are not asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.core.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ottla.core.ids import Uuid
from ottla.core.principal import Principal
from ottla.protocol.stored.metadata import AccessControlEntryRecord

# What is decided again and again, for every request of a client, is remembered for this many questions.
REMEMBERED_MAX: Final = 10_000
# Whoever asks picks the names. No topic has a longer one, and what is remembered must not fill the memory.
REMEMBERED_NAME_MAX: Final = 249
# Where it is asked whether there can be a resource that somebody may use, Kafka tries this name first.
_ANY_NAME: Final = "hardcode"

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
        # By resource type, pattern type and name, then by whom they speak of: there may be a rule on one and
        # the same resource for each of very many users, and whoever asks is to wait for their own alone.
        self._rules: dict[tuple[int, int, str], dict[str, list[AccessControlEntryRecord]]] = {}
        self._by_id: dict[Uuid, AccessControlEntryRecord] = {}
        # By resource type: how long the longest prefix is, or was, beyond which no name is looked at.
        self._prefix_max: dict[int, int] = {}
        self._remembered: dict[_Question, bool] = {}
        self._remembered_any: dict[tuple[Principal, str, Operation, ResourceType], bool] = {}
        # Grows whenever the rules change: who keeps a decision compares it.
        self.version = 0

    def configure(self, super_users: Iterable[Principal], *, allow_if_no_acl: bool) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._forget()

    def load(self, rules: Iterable[AccessControlEntryRecord]) -> None:
        """Take these rules instead of those from before."""
        self._rules = {}
        self._by_id = {}
        self._prefix_max = {}
        for rule in rules:
            self._add(rule)
        self._forget()

    def change(self, ids: Iterable[Uuid], rules: Mapping[Uuid, AccessControlEntryRecord]) -> None:
        """Take the rules with these ids as they are now; those that are not among `rules` are gone."""
        for number in ids:
            before, now = self._by_id.pop(number, None), rules.get(number)
            if before is not None:
                self._remove(before)
            if now is not None:
                self._add(now)
        self._forget()

    def _add(self, rule: AccessControlEntryRecord) -> None:
        kind, name = rule.resource_type, rule.resource_name
        self._by_id[rule.id] = rule
        of_resource = self._rules.setdefault((kind, rule.pattern_type, name), {})
        of_resource.setdefault(rule.principal, []).append(rule)
        if rule.pattern_type == PatternType.PREFIXED:
            self._prefix_max[kind] = max(self._prefix_max.get(kind, 0), len(name))

    def _remove(self, rule: AccessControlEntryRecord) -> None:
        """Nothing is left of a resource without rules: it is another thing to be spoken of and refused."""
        pattern = rule.resource_type, rule.pattern_type, rule.resource_name
        of_resource = self._rules[pattern]
        of_resource[rule.principal].remove(rule)
        if not of_resource[rule.principal]:
            del of_resource[rule.principal]
        if not of_resource:
            del self._rules[pattern]

    def _forget(self) -> None:
        self._remembered.clear()
        self._remembered_any.clear()
        self.version += 1

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        question = _Question(principal, host, operation, resource_type, name)
        known = self._remembered.get(question)
        if known is None:
            known = self._decide(question)
            if len(name) <= REMEMBERED_NAME_MAX:
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                self._remembered[question] = known
        return known

    def _decide(self, question: _Question) -> bool:
        allowed = found = False
        for rules in self._about(question.resource_type, question.name):
            found = True
            for rule in _spoken(rules, question.principal, question.host):
                if rule.permission_type == Permission.ALLOW:
                    allowed = allowed or _includes(rule.operation, question.operation)
                elif rule.operation in (question.operation, Operation.ALL):
                    return False
        return allowed or (self._allow_if_no_acl and not found)

    def _about(
        self, resource_type: ResourceType, name: str
    ) -> Iterator[dict[str, list[AccessControlEntryRecord]]]:
        """The rules of every pattern that the resource fits, by whom they speak of."""
        patterns = [(PatternType.LITERAL, name)]
        if name != WILDCARD:
            patterns.append(_EVERYTHING)
        lengths = range(1, min(len(name), self._prefix_max.get(resource_type, 0)) + 1)
        patterns += ((PatternType.PREFIXED, name[:length]) for length in lengths)
        for pattern_type, pattern in patterns:
            rules = self._rules.get((resource_type, pattern_type, pattern))
            if rules is not None:
                yield rules

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there can be a resource of this type that the principal may do this with.

        As Kafka has it, what one operation implies counts only where a rule speaks of any name there is.
        """
        if self.allows(principal, host, operation, resource_type, _ANY_NAME):
            return True
        question = principal, host, operation, resource_type
        known = self._remembered_any.get(question)
        if known is None:
            if len(self._remembered_any) >= REMEMBERED_MAX:
                self._remembered_any.clear()
            known = self._remembered_any[question] = self._decide_any(*question)
        return known

    def _decide_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        allowed: set[tuple[int, str]] = set()
        denied: set[tuple[int, str]] = set()
        for (kind, pattern_type, name), rules in self._rules.items():
            if kind != resource_type:
                continue
            for rule in _spoken(rules, principal, host):
                if rule.operation in (operation, Operation.ALL):
                    spoken_of = allowed if rule.permission_type == Permission.ALLOW else denied
                    spoken_of.add((pattern_type, name))
        if _EVERYTHING in denied:
            return False
        return _EVERYTHING in allowed or any(not _is_all_denied(each, denied) for each in allowed)


_EVERYTHING: Final = (PatternType.LITERAL, WILDCARD)


def _spoken(
    rules: dict[str, list[AccessControlEntryRecord]], principal: Principal, host: str
) -> Iterator[AccessControlEntryRecord]:
    """Those that speak of whoever asks."""
    for name in (str(principal), WILDCARD_PRINCIPAL):
        for rule in rules.get(name, ()):
            if rule.host in (host, WILDCARD):
                yield rule


def _includes(allowed: int, wanted: Operation) -> bool:
    return allowed in (wanted, Operation.ALL) or allowed in _IMPLIED_BY.get(wanted, ())


def _is_all_denied(allowed: tuple[int, str], denied: set[tuple[int, str]]) -> bool:
    """Whether one pattern that is denied covers everything that this one allows."""
    pattern_type, name = allowed
    if pattern_type == PatternType.LITERAL and allowed in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
