"""`ottla cluster`: the brokers, and whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT, AsJson, Bootstrap, Timeout, examples

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

EPILOG = examples("ottla cluster", "ottla cluster --json | jq .brokers", "ottla cluster -b kafka:9092")


def cluster(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, timeout: Timeout = DEFAULT_TIMEOUT, as_json: AsJson = False
) -> None:
    """Show the brokers, and partitions in trouble."""
    from ottla.cli.output import in_bytes, plural, print_facts, print_json, print_table
    from ottla.cli.running import run
    from ottla.client import admin

    async def command(cluster: Cluster) -> None:
        found = await admin.describe_cluster(cluster)
        controller = await admin.quorum_leader(cluster)
        topics = await cluster.all_topics()
        partitions = [each for topic in topics for each in topic.partitions.values()]
        behind = sum(len(each.isr) < len(each.replicas) for each in partitions)
        leaderless = sum(each.leader < 0 for each in partitions)
        brokers: list[dict[str, Any]] = []
        for broker in sorted(found.brokers, key=lambda each: each.broker_id):
            logs = await admin.describe_log_dirs(cluster, broker.broker_id)
            held = [p for where in logs.results for topic in where.topics for p in topic.partitions]
            brokers.append(
                {
                    "id": broker.broker_id,
                    "host": broker.host,
                    "port": broker.port,
                    "rack": broker.rack,
                    "leads": sum(each.leader == broker.broker_id for each in partitions),
                    "replicas": len(held),
                    "bytes": sum(each.partition_size for each in held),
                    "directories": [where.log_dir for where in logs.results],
                }
            )
        facts = {
            "cluster": found.cluster_id,
            "controller": controller,
            "topics": sum(not each.is_internal for each in topics),
            "internal_topics": sum(each.is_internal for each in topics),
            "partitions": len(partitions),
            "under_replicated": behind,
            "without_leader": leaderless,
        }
        if as_json:
            print_json({**facts, "brokers": brokers})
            return
        trouble = [f"{behind} under-replicated"] if behind else []
        trouble += [f"{leaderless} without leader"] if leaderless else []
        print_facts(
            [
                ("cluster", found.cluster_id),
                ("controller", None if controller is None else f"node {controller}"),
                ("topics", f"{facts['topics']} and {facts['internal_topics']} internal"),
                ("partitions", f"{plural(len(partitions), 'partition')}, {', '.join(trouble) or 'all well'}"),
            ]
        )
        print()
        rows = []
        for each in brokers:
            address, data = f"{each['host']}:{each['port']}", in_bytes(each["bytes"])
            rows.append([each["id"], address, each["rack"], each["leads"], each["replicas"], data])
        print_table(["broker", "address", "rack", "leads", "replicas", "data"], rows)

    run(bootstrap, command, timeout=timeout)
