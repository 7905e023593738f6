"""`ottla cluster`: the nodes, who leads them, and whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT, AsJson, Bootstrap, Timeout, examples

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster
    from ottla.client.topology import Topic
    from ottla.protocol.messages.describe_cluster import DescribeClusterBroker
    from ottla.protocol.messages.describe_quorum import PartitionDataResponse, ReplicaState

EPILOG = examples(
    "ottla cluster",
    "ottla cluster --check || echo somebody should look",
    "ottla cluster --json | jq .brokers",
    "ottla cluster -b kafka:9092",
)
MOST_SHOWN = 20
# A controller that fetches all the time is behind by what was written a moment ago.
LONGEST_AGO_MS = 5_000


def cluster(
    check: Annotated[
        bool, typer.Option("--check", help="End with code 1 if something is not as it should be.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show the nodes, the quorum of controllers, and partitions in trouble."""
    from ottla.cli.output import print_json
    from ottla.cli.running import FAILED, run
    from ottla.client import admin

    async def command(cluster: Cluster) -> dict[str, Any]:
        found = await admin.describe_cluster(cluster)
        quorum = await admin.describe_quorum(cluster)
        topics = await cluster.all_topics()
        brokers = [
            await _broker(cluster, each, topics)
            for each in sorted(found.brokers, key=lambda each: each.broker_id)
        ]
        return _facts(found.cluster_id, quorum, topics, brokers)

    facts = run(bootstrap, command, timeout=timeout)
    if as_json:
        print_json(facts)
    else:
        _show(facts)
    if check and facts["trouble"]:
        raise typer.Exit(FAILED)


async def _broker(cluster: Cluster, broker: DescribeClusterBroker, topics: list[Topic]) -> dict[str, Any]:
    """One row: what it leads and holds, as far as it can be asked."""
    from ottla.client import admin
    from ottla.client.errors import ClientError

    led = sum(each.leader == broker.broker_id for topic in topics for each in topic.partitions.values())
    row: dict[str, Any] = {
        "id": broker.broker_id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "state": "fenced" if broker.is_fenced else "ok",
        "leads": led,
        "replicas": None,
        "bytes": None,
        "directories": [],
    }
    if broker.is_fenced:
        return row
    try:
        logs = await admin.describe_log_dirs(cluster, broker.broker_id)
    except ClientError:
        return {**row, "state": "does not answer"}
    held = [p for where in logs.results for topic in where.topics for p in topic.partitions]
    return {
        **row,
        "replicas": len(held),
        "bytes": sum(each.partition_size for each in held),
        "directories": [where.log_dir for where in logs.results],
    }


def _facts(
    cluster_id: str, quorum: PartitionDataResponse | None, topics: list[Topic], brokers: list[dict[str, Any]]
) -> dict[str, Any]:
    partitions = [(topic, each) for topic in topics for each in topic.partitions.values()]
    behind = [(topic, each) for topic, each in partitions if len(each.isr) < len(each.replicas)]
    leaderless = [(topic, each) for topic, each in partitions if each.leader < 0]
    in_trouble = {f"{topic.name}-{each.number}": each for topic, each in (*leaderless, *behind)}
    voters = _members(quorum, quorum.current_voters) if quorum else []
    facts: dict[str, Any] = {
        "cluster": cluster_id,
        "controller": quorum.leader_id if quorum and quorum.leader_id >= 0 else None,
        "epoch": quorum.leader_epoch if quorum else None,
        "topics": sum(not each.is_internal for each in topics),
        "internal_topics": sum(each.is_internal for each in topics),
        "partitions": len(partitions),
        "under_replicated": len(behind),
        "without_leader": len(leaderless),
        "brokers": brokers,
        "voters": voters,
        "observers": _members(quorum, quorum.observers) if quorum else [],
        "partitions_in_trouble": [
            {
                "partition": name,
                "leader": each.leader if each.leader >= 0 else None,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
            }
            for name, each in in_trouble.items()
        ],
    }
    return {**facts, "trouble": _trouble(facts, quorum is not None)}


def _members(quorum: PartitionDataResponse, replicas: list[ReplicaState]) -> list[dict[str, Any]]:
    """How far each is behind the leader: in records, and since when."""
    ends = {each.replica_id: each for each in replicas}
    leader = next((each for each in quorum.current_voters if each.replica_id == quorum.leader_id), None)
    end = leader.log_end_offset if leader else max((each.log_end_offset for each in replicas), default=-1)
    now = leader.last_caught_up_timestamp if leader else -1
    return [
        {
            "id": id,
            "role": "leader" if id == quorum.leader_id else "follower",
            "end_offset": each.log_end_offset,
            "lag": max(0, end - each.log_end_offset) if each.log_end_offset >= 0 else None,
            "behind_ms": (
                max(0, now - each.last_caught_up_timestamp)
                if now > 0 and each.last_caught_up_timestamp > 0
                else None
            ),
        }
        for id, each in sorted(ends.items())
    ]


def _trouble(facts: dict[str, Any], has_quorum: bool) -> list[str]:
    """What somebody should look at, in a few words each."""
    from ottla.cli.output import plural

    found = []
    if has_quorum and facts["controller"] is None:
        found.append("there is no active controller")
    found += [f"broker {each['id']}: {each['state']}" for each in facts["brokers"] if each["state"] != "ok"]
    found += [f"controller {each['id']} is behind" for each in facts["voters"] if _is_late(each)]
    if facts["without_leader"]:
        found.append(f"{plural(facts['without_leader'], 'partition')} without leader")
    if facts["under_replicated"]:
        found.append(f"{plural(facts['under_replicated'], 'partition')} under-replicated")
    return found


def _is_late(voter: dict[str, Any]) -> bool:
    if voter["role"] == "leader":
        return False
    return voter["behind_ms"] is None or (voter["lag"] != 0 and voter["behind_ms"] > LONGEST_AGO_MS)


def _show(facts: dict[str, Any]) -> None:
    from ottla.cli.output import in_bytes, plural, print_facts, print_table

    controller = None if facts["controller"] is None else f"node {facts['controller']}"
    if controller and len(facts["voters"]) > 1:
        controller += f" of {len(facts['voters'])} voters, epoch {facts['epoch']}"
    print_facts(
        [
            ("cluster", facts["cluster"]),
            ("controller", controller),
            ("topics", f"{facts['topics']} and {facts['internal_topics']} internal"),
            (
                "partitions",
                f"{plural(facts['partitions'], 'partition')}, {', '.join(facts['trouble']) or 'all well'}",
            ),
        ]
    )
    print()
    rows = []
    for each in facts["brokers"]:
        address = f"{each['host']}:{each['port']}"
        data = None if each["bytes"] is None else in_bytes(each["bytes"])
        rows.append([each["id"], address, each["rack"], each["state"], each["leads"], each["replicas"], data])
    print_table(["broker", "address", "rack", "state", "leads", "replicas", "data"], rows)
    members = [*facts["voters"], *({**each, "role": "observer"} for each in facts["observers"])]
    if len(members) > 1:
        print()
        rows = [
            [
                each["id"],
                each["role"],
                each["end_offset"] if each["end_offset"] >= 0 else None,
                each["lag"],
                None if each["behind_ms"] is None else f"{each['behind_ms'] / 1000:.1f} s",
            ]
            for each in members
        ]
        print_table(["controller", "role", "end offset", "lag", "behind"], rows)
    if in_trouble := facts["partitions_in_trouble"]:
        print()
        rows = [
            [each["partition"], each["leader"], _ids(each["replicas"]), _ids(each["isr"])]
            for each in in_trouble[:MOST_SHOWN]
        ]
        print_table(["partition", "leader", "replicas", "in sync"], rows)
        if len(in_trouble) > MOST_SHOWN:
            print(f"... and {len(in_trouble) - MOST_SHOWN} more")


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))
