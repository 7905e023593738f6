"""`ottla group`: who reads what, how far behind, and from where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.consume import From
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
    from ottla.cli.lag import PartitionLag
    from ottla.client.cluster import Cluster

app = new_app("group", "Show consumer groups and their lag, and move their offsets.")

Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", show_default=False)]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP", help="The groups.", show_default=False)]
_LAG_COLUMNS = ["group", "topic", "partition", "committed", "end", "lag", "member"]


@app.command("list", epilog=examples("ottla group list", "ottla group list --json | jq -r '.[].group'"))
def list_(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, timeout: Timeout = DEFAULT_TIMEOUT, as_json: AsJson = False
) -> None:
    """List the groups."""
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import run
    from ottla.client import group_admin

    async def command(cluster: Cluster) -> None:
        groups = await group_admin.list_groups(cluster)
        if as_json:
            print_json(
                [
                    {
                        "group": each.group_id,
                        "type": each.group_type,
                        "state": each.group_state,
                        "protocol": each.protocol_type,
                    }
                    for each in groups
                ]
            )
            return
        rows = [[each.group_id, each.group_type or "-", each.group_state or "-"] for each in groups]
        print_table(["group", "type", "state"], rows, empty="there are no groups")

    run(bootstrap, command, timeout=timeout)


@app.command(epilog=examples("ottla group describe readers"))
def describe(
    group: Group,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show a group's state, its members with their partitions, and its lag."""
    from ottla.cli.lag import lags_of
    from ottla.cli.output import print_facts, print_json, print_table
    from ottla.cli.running import run
    from ottla.client import group_admin

    async def command(cluster: Cluster) -> None:
        found = await group_admin.describe_group(cluster, group)
        lags = await lags_of(cluster, found)
        if as_json:
            members = [
                {
                    "id": each.id,
                    "client_id": each.client_id,
                    "host": each.host,
                    "instance_id": each.instance_id,
                    "partitions": [{"topic": p.topic, "partition": p.partition} for p in each.partitions],
                }
                for each in found.members
            ]
            facts = {
                "group": found.id,
                "type": found.type,
                "state": found.state,
                "assignor": found.assignor,
                "coordinator": found.coordinator,
                "members": members,
            }
            print_json({**facts, "lag": [each.as_dict() for each in lags]})
            return
        print_facts(
            [
                ("group", found.id),
                ("type", found.type),
                ("state", found.state),
                ("assignor", found.assignor or None),
                ("coordinator", f"broker {found.coordinator}"),
                ("lag", sum(each.lag or 0 for each in lags)),
                ("members", len(found.members)),
            ]
        )
        if found.members:
            print()
            print_table(
                ["member", "client", "host", "partitions"],
                [[m.id, m.client_id, m.host, " ".join(map(str, m.partitions))] for m in found.members],
            )
        if lags:
            print()
            print_table(_LAG_COLUMNS[1:], [_row(each)[1:] for each in lags])

    run(bootstrap, command, timeout=timeout)


@app.command(epilog=examples("ottla group lag readers", "ottla group lag --json | jq 'map(.lag) | add'"))
def lag(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="GROUP", help="These; all of them if none is named.", show_default=False),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show how far groups are behind, partition by partition."""
    from ottla.cli.lag import lags_of
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import run
    from ottla.client import group_admin

    async def command(cluster: Cluster) -> None:
        names = groups or [
            each.group_id for each in await group_admin.list_groups(cluster) if each.group_type != "share"
        ]
        lags = []
        for name in names:
            lags += await lags_of(cluster, await group_admin.describe_group(cluster, name))
        if as_json:
            print_json([each.as_dict() for each in lags])
        else:
            print_table(_LAG_COLUMNS, [_row(each) for each in lags], empty="nothing has been committed")

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla group reset readers --from beginning",
        "ottla group reset readers --topic orders --time '1 hour ago' --execute",
        "ottla group reset readers --topic orders:0 --offset 42 --execute",
        "ottla group reset readers --shift -10 --execute",
    )
)
def reset(
    group: Group,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:PARTITION]",
            help="Only this; may be repeated. Without it, everything that the group has read.",
        ),
    ] = None,
    start: Annotated[From | None, typer.Option("--from", help="To the beginning or the end.")] = None,
    offset: Annotated[int | None, typer.Option("--offset", "-o", min=0, help="To this offset.")] = None,
    time: Annotated[
        str | None, typer.Option("--time", help="To the first record of this time, such as '2 hours ago'.")
    ] = None,
    shift: Annotated[
        int | None, typer.Option("--shift", help="By so many records, back if negative.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute/--dry-run", help="Do it, or only show what would be done.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Have a group go on from elsewhere. Only shows what would change, unless --execute is given."""
    from ottla.cli.lag import moves_of
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import Misused, run
    from ottla.client import group_admin

    async def command(cluster: Cluster) -> None:
        if sum(given is not None for given in (start, offset, time, shift)) != 1:
            raise Misused("say where to: one of --from beginning|end, --offset, --time or --shift")
        to = None if start is None else start.value
        moves = await moves_of(cluster, group, topics or (), start=to, offset=offset, time=time, shift=shift)
        if execute:
            await group_admin.reset_offsets(cluster, group, {move.partition: move.after for move in moves})
        if as_json:
            print_json({"group": group, "executed": execute, "moves": [each.as_dict() for each in moves]})
            return
        rows = [[m.partition.topic, m.partition.partition, m.before, m.after] for m in moves]
        print_table(["topic", "partition", "from", "to"], rows)
        if not execute:
            typer.echo("nothing was changed; add --execute to do it", err=True)

    run(bootstrap, command, timeout=timeout)


@app.command(epilog=examples("ottla group delete readers"))
def delete(
    groups: Groups,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Delete groups that have no members, with their offsets. Asks first on a terminal.

    One that cannot be deleted does not keep the others from it.
    """
    from ottla.cli.asking import confirm
    from ottla.cli.output import print_json
    from ottla.cli.running import FAILED, complain, run
    from ottla.client import group_admin
    from ottla.protocol.errors import KafkaError

    async def command(cluster: Cluster) -> None:
        confirm(f"Delete {', '.join(groups)} with all offsets?", yes)
        done: list[dict[str, Any]] = []
        for name in groups:
            try:
                await group_admin.delete_group(cluster, name)
            except KafkaError as error:
                done.append({"group": name, "deleted": False, "error": complain(error)})
                continue
            done.append({"group": name, "deleted": True})
            if not as_json:
                print(f"deleted group {name}")
        if as_json:
            print_json(done)
        if not all(each["deleted"] for each in done):
            raise typer.Exit(FAILED)

    run(bootstrap, command, timeout=timeout)


def _row(each: PartitionLag) -> list[Any]:
    partition = each.partition
    return [each.group, partition.topic, partition.partition, each.committed, each.end, each.lag, each.member]
