"""`ottla acl`: who may do what."""

from __future__ import annotations

from collections.abc import Sequence
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
    from ottla.client.acl_admin import Rule, RuleFilter
    from ottla.client.cluster import Cluster

app = new_app("acl", "Show, add and remove access rules: who may do what.")

Topics = Annotated[
    list[str] | None, typer.Option("--topic", "-t", metavar="NAME", help="A topic, or '*'; may be repeated.")
]
Groups = Annotated[
    list[str] | None, typer.Option("--group", "-g", metavar="NAME", help="A group, or '*'; may be repeated.")
]
TransactionalIds = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", help="A transactional id, or '*'; may be repeated."),
]
OfCluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Prefix = Annotated[bool, typer.Option("--prefix", help="The names are the beginnings of names.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="Only from this address; may be repeated."),
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        "-o",
        metavar="NAME",
        help="Such as read, write, describe, create, delete, alter or all; may be repeated.",
    ),
]
Allow = Annotated[
    list[str] | None, typer.Option(metavar="PRINCIPAL", help="Who may: User:alice; may be repeated.")
]
Deny = Annotated[
    list[str] | None,
    typer.Option(metavar="PRINCIPAL", help="Who may not, whatever else allows it; may be repeated."),
]
Principals = Annotated[
    list[str] | None,
    typer.Option("--principal", metavar="PRINCIPAL", help="Rules for User:alice; may be repeated."),
]


@app.command(
    "list",
    epilog=examples(
        "ottla acl list",
        "ottla acl list --topic orders",
        "ottla acl list --principal User:alice --json",
    ),
)
def list_(
    topics: Topics = None,
    groups: Groups = None,
    transactional_ids: TransactionalIds = None,
    of_cluster: OfCluster = False,
    prefix: Prefix = False,
    principals: Principals = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List the access rules.

    Those of a topic are all that apply to it: rules about its name, about how it begins, and about all
    topics. With --prefix they are only those about names that begin so.
    """
    from ottla.cli.acl_rules import Resources, filters
    from ottla.cli.output import print_json
    from ottla.cli.running import run
    from ottla.core.acl import PatternType

    async def command(cluster: Cluster) -> None:
        resources = Resources(topics or (), groups or (), transactional_ids or (), of_cluster, prefix)
        pattern = None if prefix else PatternType.MATCH
        found = await _meant(cluster, filters(resources, principals=principals or (), pattern=pattern))
        if as_json:
            print_json(_dicts(found))
        else:
            _print(found, empty="there are no such rules; add one with `ottla acl add`")

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla acl add --allow User:alice --operation read --topic orders",
        "ottla acl add --allow User:alice --producer --topic orders",
        "ottla acl add --allow User:bob --consumer --topic orders --group readers",
        "ottla acl add --allow User:carol --operation all --topic team- --prefix",
        "ottla acl add --deny 'User:*' --operation delete --topic '*' --host 10.0.0.7",
    )
)
def add(
    allow: Allow = None,
    deny: Deny = None,
    operations: Operations = None,
    producer: Annotated[
        bool, typer.Option("--producer", help="All that it takes to write to the topics.")
    ] = False,
    consumer: Annotated[
        bool, typer.Option("--consumer", help="All that it takes to read the topics in the groups.")
    ] = False,
    topics: Topics = None,
    groups: Groups = None,
    transactional_ids: TransactionalIds = None,
    of_cluster: OfCluster = False,
    prefix: Prefix = False,
    hosts: Hosts = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Add access rules. One that is there already stays as it is."""
    from ottla.cli.acl_rules import Resources, rules
    from ottla.cli.output import print_json
    from ottla.cli.running import run
    from ottla.client import acl_admin

    async def command(cluster: Cluster) -> None:
        wanted = rules(
            Resources(topics or (), groups or (), transactional_ids or (), of_cluster, prefix),
            allow=allow or (),
            deny=deny or (),
            hosts=hosts or (),
            operations=operations or (),
            producer=producer,
            consumer=consumer,
        )
        await acl_admin.create_acls(cluster, wanted)
        if as_json:
            print_json(_dicts(wanted))
        else:
            _print(wanted)

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla acl remove --allow User:alice --operation read --topic orders",
        "ottla acl remove --principal User:alice",
        "ottla acl remove --topic team- --prefix --yes",
        "ottla acl remove --all",
    )
)
def remove(
    principals: Principals = None,
    allow: Allow = None,
    deny: Deny = None,
    operations: Operations = None,
    topics: Topics = None,
    groups: Groups = None,
    transactional_ids: TransactionalIds = None,
    of_cluster: OfCluster = False,
    prefix: Prefix = False,
    hosts: Hosts = None,
    everything: Annotated[bool, typer.Option("--all", help="All rules there are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Remove the access rules that all of the options fit. Asks first on a terminal."""
    from ottla.cli.acl_rules import Resources, filters
    from ottla.cli.asking import confirm
    from ottla.cli.output import plural, print_json
    from ottla.cli.running import Misused, run
    from ottla.client import acl_admin

    async def command(cluster: Cluster) -> None:
        resources = Resources(topics or (), groups or (), transactional_ids or (), of_cluster, prefix)
        given = [*resources, *(principals or ()), *(allow or ()), *(deny or ()), *(operations or ())]
        if bool(given or hosts) == everything:
            raise Misused("say which rules: --principal, --allow, --topic and so on, or --all of them")
        wanted = filters(
            resources,
            principals=principals or (),
            allow=allow or (),
            deny=deny or (),
            hosts=hosts or (),
            operations=operations or (),
        )
        found = await _meant(cluster, wanted)
        if found and not yes:
            if not as_json:
                _print(found)
            confirm(f"Remove {plural(len(found), 'rule')}?", yes)
        removed = await acl_admin.delete_acls(cluster, wanted) if found else []
        if as_json:
            print_json(_dicts(removed))
        else:
            print(f"removed {plural(len(removed), 'rule')}" if removed else "there is no such rule")

    run(bootstrap, command, timeout=timeout)


async def _meant(cluster: Cluster, filters: Sequence[RuleFilter]) -> list[Rule]:
    from ottla.client import acl_admin

    found: set[Rule] = set()
    for each in filters:
        found |= set(await acl_admin.list_acls(cluster, each))
    return list(found)


def _dicts(found: Sequence[Rule]) -> list[dict[str, str]]:
    from ottla.cli.acl_rules import as_dict, in_order

    return [as_dict(rule) for rule in in_order(found)]


def _print(found: Sequence[Rule], *, empty: str = "") -> None:
    from ottla.cli.output import print_table

    columns = ["principal", "permission", "operation", "resource", "name", "pattern", "host"]
    print_table(columns, [list(each.values()) for each in _dicts(found)], empty=empty)
