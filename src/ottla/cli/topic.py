"""`ottla topic`: make, show, change and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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
    from ottla.client.cluster import Cluster
    from ottla.client.topology import Topic as KnownTopic

app = new_app("topic", "Make, show, change and delete topics.")

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC", help="The topics.", show_default=False)]
Configs = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="Set this; may be repeated.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check that it could be done.")]


@app.command(
    epilog=examples(
        "ottla topic create orders -p 6",
        "ottla topic create clicks -c retention.ms=86400000 -c compression.type=zstd",
        "ottla topic create accounts -c cleanup.policy=compact --if-not-exists",
    )
)
def create(
    topics: Topics,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="How many; -1 leaves it to the broker.")
    ] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="Copies of each; -1 leaves it to the broker.")
    ] = -1,
    configs: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="One that exists already is no error.")
    ] = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Make topics. One that cannot be made does not keep the others from it."""
    from ottla.cli.given_values import assignments
    from ottla.cli.output import plural, print_json
    from ottla.cli.running import FAILED, complain, run
    from ottla.client import admin
    from ottla.protocol.errors import KafkaError, TopicAlreadyExists

    async def command(cluster: Cluster) -> None:
        wanted = assignments(configs or (), "--config")
        done: list[dict[str, Any]] = []
        failed = False
        for name in topics:
            try:
                made = await admin.create_topic(
                    cluster,
                    name,
                    partitions=partitions,
                    replication_factor=replication_factor,
                    configs=wanted,
                    validate_only=dry_run,
                )
            except KafkaError as error:
                if if_not_exists and isinstance(error, TopicAlreadyExists):
                    done.append({"topic": name, "created": False})
                    if not as_json:
                        print(f"topic {name} exists already")
                else:
                    failed = True
                    done.append({"topic": name, "created": False, "error": complain(error)})
                continue
            done.append(
                {
                    "topic": name,
                    "created": not dry_run,
                    "id": None if dry_run else str(made.topic_id),
                    "partitions": made.num_partitions,
                    "replication_factor": made.replication_factor,
                }
            )
            if not as_json:
                made_it = "could create" if dry_run else "created"
                size = plural(made.num_partitions, "partition")
                print(f"{made_it} topic {name}: {size}, replication factor {made.replication_factor}")
        if as_json:
            print_json(done)
        if failed:
            raise typer.Exit(FAILED)

    run(bootstrap, command, timeout=timeout)


@app.command("list", epilog=examples("ottla topic list", "ottla topic list --json | jq -r '.[].topic'"))
def list_(
    internal: Annotated[bool, typer.Option("--internal", "-i", help="The cluster's own topics too.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List the topics."""
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import run

    async def command(cluster: Cluster) -> None:
        topics = [each for each in await cluster.all_topics() if internal or not each.is_internal]
        if as_json:
            print_json([_summary(each) for each in topics])
            return
        rows = [[each.name, len(each.partitions), _replication(each), _health(each)] for each in topics]
        print_table(
            ["topic", "partitions", "replicas", "health"],
            rows,
            empty="there are no topics; make one with `ottla topic create NAME`",
        )

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples("ottla topic describe orders", "ottla topic describe orders --json | jq .configs")
)
def describe(
    topic: Topic,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show a topic's partitions, their offsets, and the settings that are not the default."""
    from ottla.cli.configs import as_dict, is_chosen
    from ottla.cli.given_values import partitions_of
    from ottla.cli.output import print_facts, print_json, print_table
    from ottla.cli.running import run
    from ottla.client import admin, offsets

    async def command(cluster: Cluster) -> None:
        found = await cluster.topic(topic)
        led = [each for each in await partitions_of(cluster, [topic]) if each.partition in found.available]
        starts, ends = await offsets.beginnings(cluster, led), await offsets.ends(cluster, led)
        begin = {each.partition: offset for each, offset in starts.items()}
        end = {each.partition: offset for each, offset in ends.items()}
        configs = await admin.describe_configs(cluster, admin.ResourceType.TOPIC, topic)
        if as_json:
            partitions = [
                {
                    "partition": p.number,
                    "leader": p.leader,
                    "leader_epoch": p.leader_epoch,
                    "replicas": list(p.replicas),
                    "isr": list(p.isr),
                    "start_offset": begin.get(p.number),
                    "end_offset": end.get(p.number),
                }
                for p in found.partitions.values()
            ]
            settings = [as_dict(each) for each in configs]
            print_json({**_summary(found), "partition_details": partitions, "configs": settings})
            return
        chosen = [f"{each.name}={each.value}" for each in configs if is_chosen(each)]
        print_facts(
            [
                ("topic", found.name),
                ("id", found.id),
                ("partitions", len(found.partitions)),
                ("replicas", _replication(found)),
                ("records", f"{sum(end.values()) - sum(begin.values()):,} offsets held"),
                ("settings", ", ".join(chosen) or "all default"),
            ]
        )
        rows = [
            [p.number, p.leader, _ids(p.replicas), _ids(p.isr), begin.get(p.number), end.get(p.number)]
            for p in found.partitions.values()
        ]
        print()
        print_table(["partition", "leader", "replicas", "in sync", "start", "end"], rows)

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla topic alter orders -c retention.ms=3600000",
        "ottla topic alter orders --unset retention.ms",
        "ottla topic alter orders --partitions 12",
    )
)
def alter(
    topic: Topic,
    configs: Configs = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", "-u", metavar="NAME", help="Back to the default; may be repeated."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Grow to this many partitions in all.")
    ] = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Change a topic's settings or the number of its partitions."""
    from ottla.cli.configs import alter as alter_configs
    from ottla.cli.configs import changes_of, report
    from ottla.cli.running import Misused, run
    from ottla.client import admin

    async def command(cluster: Cluster) -> None:
        changes = changes_of(configs or (), unset or (), "--config")
        if not changes and partitions is None:
            raise Misused("nothing to change; give --config NAME=VALUE, --unset NAME or --partitions N")
        if changes:
            await alter_configs(cluster, admin.ResourceType.TOPIC, topic, changes, dry_run=dry_run)
        if partitions is not None:
            await admin.add_partitions(cluster, topic, partitions, validate_only=dry_run)
        extra = {} if partitions is None else {"partitions": partitions}
        report(f"topic {topic}", changes, dry_run, as_json, {"topic": topic, **extra})

    run(bootstrap, command, timeout=timeout)


@app.command(epilog=examples("ottla topic delete orders", "ottla topic delete orders clicks --yes"))
def delete(
    topics: Topics,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Delete topics with all their records. Asks first on a terminal.

    One that cannot be deleted does not keep the others from it.
    """
    from ottla.cli.asking import confirm
    from ottla.cli.output import print_json
    from ottla.cli.running import FAILED, complain, run
    from ottla.client import admin
    from ottla.protocol.errors import KafkaError

    async def command(cluster: Cluster) -> None:
        failed: dict[str, str] = {}
        for name in topics:
            try:
                await cluster.topic(name)
            except KafkaError as error:
                failed[name] = complain(error)
        existing = [name for name in dict.fromkeys(topics) if name not in failed]
        if existing:
            confirm(f"Delete {', '.join(existing)} with all records?", yes)
        for name in existing:
            try:
                await admin.delete_topic(cluster, name)
            except KafkaError as error:
                failed[name] = complain(error)
                continue
            if not as_json:
                print(f"deleted topic {name}")
        if as_json:
            print_json(
                [
                    {"topic": name, "deleted": False, "error": failed[name]}
                    if name in failed
                    else {"topic": name, "deleted": True}
                    for name in dict.fromkeys(topics)
                ]
            )
        if failed:
            raise typer.Exit(FAILED)

    run(bootstrap, command, timeout=timeout)


@app.command("add-partitions", epilog=examples("ottla topic add-partitions orders 3"))
def add_partitions(
    topic: Topic,
    count: Annotated[int, typer.Argument(min=1, metavar="COUNT", help="How many more.", show_default=False)],
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Give a topic more partitions. New records of a key may then go to another partition than old ones."""
    from ottla.cli.output import print_json
    from ottla.cli.running import run
    from ottla.client import admin

    async def command(cluster: Cluster) -> None:
        total = len((await cluster.topic(topic)).partitions) + count
        await admin.add_partitions(cluster, topic, total, validate_only=dry_run)
        if as_json:
            print_json({"topic": topic, "partitions": total, "added": 0 if dry_run else count})
        else:
            print(f"topic {topic} {'could have' if dry_run else 'has'} {total} partitions now")

    run(bootstrap, command, timeout=timeout)


@app.command(
    "delete-records",
    epilog=examples(
        "ottla topic delete-records orders --before 1000 -p 0",
        "ottla topic delete-records orders --before end",
        "ottla topic delete-records orders --time '2 days ago'",
    ),
)
def delete_records(
    topic: Topic,
    before: Annotated[
        str | None, typer.Option("--before", metavar="OFFSET", help="Records before this offset, or `end`.")
    ] = None,
    time: Annotated[str | None, typer.Option("--time", help="Records before this time.")] = None,
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only of this partition; may be repeated.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Delete the oldest records of a topic. Asks first on a terminal."""
    from ottla.cli.asking import confirm
    from ottla.cli.given_values import partitions_of
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import Misused, run
    from ottla.cli.times import local_now, parse_time
    from ottla.client import admin, offsets

    async def command(cluster: Cluster) -> None:
        if (before is None) == (time is None):
            raise Misused("say which records: --before OFFSET, --before end or --time '2 days ago'")
        wanted = await partitions_of(cluster, [topic], partitions or ())
        if time is not None:
            limits = await offsets.at_time(cluster, wanted, parse_time(time, local_now()))
        elif before == "end":
            limits = await offsets.ends(cluster, wanted)
        elif before is not None and before.isdecimal():
            limits = dict.fromkeys(wanted, int(before))
        else:
            raise Misused(f"--before {before}: it should be an offset or `end`")
        confirm(f"Delete records of {len(wanted)} partitions of {topic}?", yes)
        begins = await admin.delete_records(cluster, limits)
        if as_json:
            rows = [{"partition": each.partition, "start_offset": begins[each]} for each in sorted(begins)]
            print_json({"topic": topic, "partitions": rows})
        else:
            print_table(
                ["topic", "partition", "starts at"],
                [[each.topic, each.partition, begins[each]] for each in sorted(begins)],
            )

    run(bootstrap, command, timeout=timeout)


def _summary(topic: KnownTopic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "id": str(topic.id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": _replication(topic),
    }


def _replication(topic: KnownTopic) -> int:
    return max((len(each.replicas) for each in topic.partitions.values()), default=0)


def _health(topic: KnownTopic) -> str:
    partitions = topic.partitions.values()
    if leaderless := sum(each.leader < 0 for each in partitions):
        return f"{leaderless} without leader"
    if behind := sum(len(each.isr) < len(each.replicas) for each in partitions):
        return f"{behind} under-replicated"
    return "ok"


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
