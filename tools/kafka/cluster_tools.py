"""Kafka's own tools against a cluster of three nodes, its own or Ottla's."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.testing.cluster import TestCluster
from tools.kafka.distribution import command
from tools.kafka.java_tools import Step, _problems
from tools.kafka.run import class_of

VERIFY_SECONDS = 12.0


def run_cluster_tools(cluster: TestCluster) -> list[str]:
    """Every step that did not print what it should."""
    with tempfile.TemporaryDirectory(prefix="ottla-cluster-tools-") as folder:
        topic = cluster.unique("tools")
        return [
            *_problems(steps(cluster, topic, Path(folder))),
            *verify_replicas(cluster),
            *_problems(last_steps(cluster, topic)),
        ]


def check_cluster() -> bool:
    """Whether a tool found something wrong with a cluster of Ottla's."""
    from tools.kafka.check import report

    with TestCluster() as cluster:
        return report(
            "Kafka's own tools work against a cluster of Ottla's", lambda: run_cluster_tools(cluster)
        )


def steps(cluster: TestCluster, topic: str, folder: Path) -> Iterator[Step]:
    server = f"--bootstrap-server {cluster.bootstrap}"
    yield Step(
        f"topics {server} --create --topic {topic} --partitions 3 --replication-factor 3"
        " --config min.insync.replicas=2",
        (topic,),
    )
    yield Step(
        f"topics {server} --describe --topic {topic}",
        ("ReplicationFactor: 3", "min.insync.replicas=2", "Leader: 1", "Leader: 2", "Leader: 3"),
    )
    yield Step(f"topics {server} --describe --under-replicated-partitions", ("-Topic:",))
    yield Step(f"topics {server} --describe --unavailable-partitions", ("-Topic:",))
    yield Step(
        f"metadata-quorum {server} describe --status", ("LeaderId:", "CurrentVoters:", '"id": 1', '"id": 3')
    )
    yield Step(f"metadata-quorum {server} describe --replication", ("Leader", "Follower"))
    yield Step(f"cluster list-endpoints {server}", ("unfenced",), since=4)
    yield Step(
        f"producer-perf --topic {topic} --num-records 20000 --record-size 100 --throughput -1"
        f" --command-property bootstrap.servers={cluster.bootstrap} acks=all",
        ("20000 records sent",),
    )
    yield Step(f"verifiable-producer {server} --topic {topic} --max-messages 100", ('"acked":100',))
    yield Step(f"api-versions {server}", ("Produce(0)",))
    yield Step(f"log-dirs {server} --describe --topic-list {topic}", (f'"partition":"{topic}-0"',))
    yield from moving_steps(cluster, server, topic, folder)
    yield Step(f"leader-election {server} --election-type preferred --all-topic-partitions")


def last_steps(cluster: TestCluster, topic: str) -> Iterator[Step]:
    server = f"--bootstrap-server {cluster.bootstrap}"
    yield Step(f"topics {server} --delete --topic {topic}")
    yield Step(f"topics {server} --list", (f"-{topic}\n",))


def moving_steps(cluster: TestCluster, server: str, topic: str, folder: Path) -> Iterator[Step]:
    plan = folder / "plan.json"
    moved = [{"topic": topic, "partition": 0, "replicas": [3, 2]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moved}))
    yield Step(
        f"reassign {server} --reassignment-json-file {plan} --execute", ("Successfully started partition",)
    )
    deadline = time.monotonic() + 60
    while set(cluster.state().partitions[f"{topic}-0"].replicas) != {2, 3} and time.monotonic() < deadline:
        time.sleep(0.2)
    yield Step(f"reassign {server} --reassignment-json-file {plan} --verify", ("is completed",))
    yield Step(f"reassign {server} --list", ("No partition reassignments found",))


def verify_replicas(cluster: TestCluster) -> list[str]:
    """ReplicaVerificationTool fetches from every replica and compares; it goes on until it is ended."""
    arguments = ("--broker-list", cluster.bootstrap, "--report-interval-ms", "2000")
    process = subprocess.Popen(
        command(class_of("replica-verification"), *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=VERIFY_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, _ = process.communicate()
    if "max lag is 0" not in output:
        return [f"replica-verification: no report without lag in {output[-1500:]!r}"]
    return [
        f"replica-verification: {line}"
        for line in output.splitlines()
        if "partition" in line and "differ" in line
    ]
