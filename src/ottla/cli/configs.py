"""Settings of topics, brokers and groups, as `ottla config` and `ottla topic` show and change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.cli.given_values import assignments
from ottla.cli.output import print_json
from ottla.cli.running import Refused
from ottla.client import admin
from ottla.client.admin import Operation, ResourceType
from ottla.client.cluster import Cluster
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

SOURCES: Final = {
    1: "topic",
    2: "broker, live",
    3: "all brokers, live",
    4: "broker's file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
_DEFAULT: Final = 5

Change = tuple[str, Operation, str | None]


def changes_of(assigned: Iterable[str], unset: Iterable[str], option: str) -> list[Change]:
    changes: list[Change] = [
        (name, Operation.SET, value) for name, value in assignments(assigned, option).items()
    ]
    return changes + [(name, Operation.UNSET, None) for name in unset]


async def alter(
    cluster: Cluster, kind: ResourceType, name: str, changes: list[Change], *, dry_run: bool
) -> None:
    """Change settings. Brokers unset whatever they are asked to, so a slip in a name is told here."""
    await _check_known(cluster, kind, name, [key for key, how, _ in changes if how is Operation.UNSET])
    await admin.alter_configs(cluster, kind, name, changes, validate_only=dry_run)


async def _check_known(cluster: Cluster, kind: ResourceType, name: str, keys: list[str]) -> None:
    if not keys:
        return
    if kind is ResourceType.BROKER and not name:  # all brokers: what one of them knows
        await cluster.persist(cluster.refresh)
        name = str(min(cluster.brokers))
    found = await admin.describe_configs(cluster, kind, name, keys=keys)
    if missing := set(keys) - {each.name for each in found}:
        raise no_setting(kind.name.lower(), name, min(missing))


def no_setting(kind: str, name: str, key: str) -> Refused:
    return Refused(
        f"{kind} {name} has no setting {key}; `ottla config get {kind} {name} --all` shows those it has"
    )


def is_chosen(config: DescribeConfigsResourceResult) -> bool:
    """Whether somebody set it for this resource, rather than it being inherited."""
    return config.config_source in (1, 2)


def is_default(config: DescribeConfigsResourceResult) -> bool:
    return config.config_source == _DEFAULT


def source(config: DescribeConfigsResourceResult) -> str:
    return SOURCES.get(config.config_source, str(config.config_source))


def as_dict(config: DescribeConfigsResourceResult) -> dict[str, Any]:
    found = {
        "name": config.name,
        "value": config.value,
        "source": source(config),
        "read_only": config.read_only,
        "sensitive": config.is_sensitive,
    }
    if config.documentation:
        found["documentation"] = config.documentation
    return found


def report(
    subject: str, changes: list[Change], dry_run: bool, as_json: bool, facts: Mapping[str, Any]
) -> None:
    """Say what was changed, or could be."""
    if as_json:
        made = [{"name": name, "value": value} for name, _, value in changes]
        print_json({**facts, "changes": made, "changed": not dry_run})
        return
    for name, operation, value in changes:
        what = f"{name}={value}" if operation is Operation.SET else f"{name} back to its default"
        print(f"{subject}: {'could set' if dry_run else 'set'} {what}")
    if "partitions" in facts:
        print(f"{subject}: {'could have' if dry_run else 'has'} {facts['partitions']} partitions now")
