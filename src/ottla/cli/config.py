"""`ottla config`: settings of topics, brokers and groups, while they run."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    AsJson,
    Bootstrap,
    Timeout,
    examples,
    new_app,
)

if TYPE_CHECKING:
    from ottla.cli.configs import Change
    from ottla.client.admin import ResourceType
    from ottla.client.cluster import Cluster

app = new_app("config", "Show and change settings of topics, brokers and groups.")


class Kind(StrEnum):
    """What the settings belong to."""

    topic = "topic"
    broker = "broker"
    group = "group"


KindArgument = Annotated[
    Kind,
    typer.Argument(metavar="KIND", help="What it belongs to: topic, broker or group.", show_default=False),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The topic, the group, the broker's id, or `all` brokers.", show_default=False
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check that it could be done.")]


@app.command(
    epilog=examples(
        "ottla config get topic orders",
        "ottla config get topic orders retention.ms --json",
        "ottla config get broker 1 --all",
    )
)
def get(
    kind: KindArgument,
    name: Name,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="SETTING", help="Only these.", show_default=False)
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Those at their default too.")] = False,
    docs: Annotated[bool, typer.Option("--docs", help="Say what each is for.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show settings: those that are not at their default, those named, or all."""
    from ottla.cli.configs import as_dict, is_default, no_setting, source
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import run
    from ottla.client import admin

    async def command(cluster: Cluster) -> None:
        resource, named = await _resource(cluster, kind, name)
        found = await admin.describe_configs(cluster, resource, named, keys=keys or None, documentation=docs)
        if missing := set(keys or ()) - {each.name for each in found}:
            raise no_setting(kind.value, name, min(missing))
        shown = [each for each in found if show_all or keys or not is_default(each)]
        if as_json:
            print_json([as_dict(each) for each in shown])
            return
        columns = ["setting", "value", "set by"] + (["about"] if docs else [])
        rows = [
            [each.name, _value(each.value, each.is_sensitive), source(each)]
            + ([each.documentation] if docs else [])
            for each in shown
        ]
        print_table(columns, rows, empty="everything is at its default; --all shows it")

    run(bootstrap, command, timeout=timeout)


@app.command(
    "set",
    epilog=examples(
        "ottla config set topic orders retention.ms=3600000",
        "ottla config set broker all log.cleaner.threads=2",
        "ottla config set group readers consumer.session.timeout.ms=60000",
    ),
)
def set_(
    kind: KindArgument,
    name: Name,
    assigned: Annotated[
        list[str], typer.Argument(metavar="SETTING=VALUE", help="What to set.", show_default=False)
    ],
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Set settings; takes effect at once."""
    from ottla.cli.configs import changes_of
    from ottla.cli.running import guarded

    changes = guarded(lambda: changes_of(assigned, (), "config set"))
    _change(kind, name, changes, dry_run, bootstrap, timeout, as_json)


@app.command(epilog=examples("ottla config unset topic orders retention.ms"))
def unset(
    kind: KindArgument,
    name: Name,
    keys: Annotated[
        list[str], typer.Argument(metavar="SETTING", help="What to put back.", show_default=False)
    ],
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Put settings back to their default."""
    from ottla.cli.configs import changes_of

    _change(kind, name, changes_of((), keys, ""), dry_run, bootstrap, timeout, as_json)


def _change(
    kind: Kind, name: str, changes: list[Change], dry_run: bool, bootstrap: str, timeout: float, as_json: bool
) -> None:
    from ottla.cli.configs import alter, report
    from ottla.cli.running import run

    async def command(cluster: Cluster) -> None:
        resource, named = await _resource(cluster, kind, name)
        await alter(cluster, resource, named, changes, dry_run=dry_run)
        report(f"{kind.value} {name}", changes, dry_run, as_json, {kind.value: name})

    run(bootstrap, command, timeout=timeout)


async def _resource(cluster: Cluster, kind: Kind, name: str) -> tuple[ResourceType, str]:
    from ottla.cli.running import Misused, Refused
    from ottla.client.admin import ResourceType

    if kind is Kind.topic:
        return ResourceType.TOPIC, name
    if kind is Kind.group:  # which need not be there yet
        return ResourceType.GROUP, name
    if name == "all":
        return ResourceType.BROKER, ""
    if not name.isdecimal():
        raise Misused(f"a broker is named by its id, or `all`; {name} is neither (see `ottla cluster`)")
    await cluster.persist(cluster.refresh)
    if int(name) not in cluster.brokers:
        raise Refused(f"there is no broker {name}; `ottla cluster` shows those there are")
    return ResourceType.BROKER, name


def _value(value: str | None, sensitive: bool) -> str | None:
    return "(hidden)" if sensitive else value
