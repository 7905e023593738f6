"""From the options of `ottla acl` to the rules they mean, and from rules to words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from ottla.cli.running import Misused
from ottla.client.acl_admin import Rule, RuleFilter
from ottla.core.acl import CLUSTER_NAME, POSSIBLE, Operation, PatternType, Permission, ResourceType

OPTIONS: Final = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.CLUSTER: "--cluster",
}
# What the shortcuts stand for, as in kafka-acls.
PRODUCING: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMING: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


@dataclass(frozen=True, slots=True)
class Resources:
    """What was given with --topic, --group, --transactional-id, --cluster and --prefix."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    cluster: bool = False
    prefix: bool = False

    def __iter__(self) -> Iterator[tuple[ResourceType, str, PatternType]]:
        pattern = PatternType.PREFIXED if self.prefix else PatternType.LITERAL
        for kind, names in (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
        ):
            for name in names:
                if not name:
                    raise Misused(f"{OPTIONS[kind]}: the name is empty")
                if name == "*" and self.prefix:
                    raise Misused(f"{OPTIONS[kind]} '*' stands for all; it takes no --prefix")
                yield kind, name, pattern
        if self.cluster:
            yield ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL


def principal(text: str, option: str) -> str:
    """`User:alice`, for which `alice` will do."""
    if not text or text.endswith(":"):
        raise Misused(f"{option} {text}: it should look like User:alice")
    return text if ":" in text else f"User:{text}"


def operation(text: str) -> Operation:
    """Written `describe-configs`, `DescribeConfigs` or `DESCRIBE_CONFIGS`."""
    wanted = _letters(text)
    for each in Operation:
        if each >= Operation.ALL and _letters(each.name) == wanted:
            return each
    raise Misused(
        f"--operation {text}: there are {', '.join(word(Operation, each) for each in Operation if each > 1)}"
    )


def rules(
    resources: Resources,
    *,
    allow: Iterable[str],
    deny: Iterable[str],
    hosts: Sequence[str],
    operations: Iterable[str],
    producer: bool,
    consumer: bool,
) -> list[Rule]:
    """The rules to add: each principal may, or may not, do each operation from each host."""
    who = [(principal(each, "--allow"), Permission.ALLOW) for each in allow]
    who += [(principal(each, "--deny"), Permission.DENY) for each in deny]
    if not who:
        raise Misused("say for whom: --allow User:alice or --deny User:alice")
    found = list(resources)
    if not found:
        raise Misused(f"say what it is about: one of {', '.join(OPTIONS.values())}")
    if producer or consumer:
        if list(operations):
            raise Misused("give either --operation or --producer and --consumer")
        wanted = _of_shortcuts(found, producer=producer, consumer=consumer)
    else:
        wanted = _of_operations(found, [operation(each) for each in operations])
    made = [
        Rule(kind, name, pattern, named, host, each, permission)
        for named, permission in who
        for host in hosts or ("*",)
        for (kind, name, pattern), each in wanted
    ]
    return list(dict.fromkeys(made))


Wanted = list[tuple[tuple[ResourceType, str, PatternType], Operation]]


def _of_operations(resources: list[tuple[ResourceType, str, PatternType]], given: list[Operation]) -> Wanted:
    if not given:
        raise Misused("say what they may do: --operation read, or --producer or --consumer")
    for kind, _, _ in resources:
        for each in given:
            if each != Operation.ALL and each not in POSSIBLE[kind]:
                possible = ", ".join(word(Operation, one) for one in (*POSSIBLE[kind], Operation.ALL))
                raise Misused(f"{OPTIONS[kind]} knows no {word(Operation, each)}, only {possible}")
    return [(resource, each) for resource in resources for each in given]


def _of_shortcuts(
    resources: list[tuple[ResourceType, str, PatternType]], *, producer: bool, consumer: bool
) -> Wanted:
    kinds = {kind for kind, _, _ in resources}
    if ResourceType.TOPIC not in kinds:
        raise Misused("--producer and --consumer need a --topic")
    if consumer and ResourceType.GROUP not in kinds:
        raise Misused("--consumer needs a --group")
    sets = [each for each, given in ((PRODUCING, producer), (CONSUMING, consumer)) if given]
    unused = [kind for kind in kinds if not any(kind in each for each in sets)]
    if unused:
        raise Misused(f"{OPTIONS[unused[0]]} has no part in that")
    return [
        (resource, each)
        for resource in resources
        for operations in sets
        for each in operations.get(resource[0], ())
    ]


def filters(
    resources: Resources,
    *,
    principals: Iterable[str] = (),
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    hosts: Sequence[str] = (),
    operations: Iterable[str] = (),
    pattern: PatternType | None = None,
) -> list[RuleFilter]:
    """The rules that are meant; what was not given may be anything."""
    who: list[tuple[str | None, int]] = [
        (principal(each, "--principal"), Permission.ANY) for each in principals
    ]
    who += [(principal(each, "--allow"), Permission.ALLOW) for each in allow]
    who += [(principal(each, "--deny"), Permission.DENY) for each in deny]
    about: list[tuple[int, str | None, int]] = [
        (kind, name, pattern or given) for kind, name, given in resources
    ] or [(ResourceType.ANY, None, PatternType.ANY)]
    return [
        RuleFilter(kind, name, how, named, host, each, permission)
        for kind, name, how in about
        for named, permission in who or [(None, Permission.ANY)]
        for host in hosts or (None,)
        for each in [operation(one) for one in operations] or [Operation.ANY]
    ]


def word(words: type[IntEnum], number: int) -> str:
    return words(number).name.lower().replace("_", "-") if number in list(words) else str(number)


def as_dict(rule: Rule) -> dict[str, Any]:
    return {
        "principal": rule.principal,
        "permission": word(Permission, rule.permission),
        "operation": word(Operation, rule.operation),
        "resource": word(ResourceType, rule.resource_type),
        "name": rule.name,
        "pattern": word(PatternType, rule.pattern_type),
        "host": rule.host,
    }


def in_order(found: Iterable[Rule]) -> list[Rule]:
    """By who they are about, then by what."""
    return sorted(found, key=lambda rule: (rule.principal, *rule))


def _letters(text: str) -> str:
    return text.replace("-", "").replace("_", "").lower()
