"""Kafka's own command line tools, and with them the Java clients, against a running broker.

The Java clients always speak the newest versions, topic ids and fetch sessions included. Those of an older
release (`KAFKA_VERSION=3.9.1`) know fewer tools, and some options by other names.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.kafka.distribution import VERSION
from tools.kafka.run import ToolFailed, run_tool


class Step(NamedTuple):
    """A tool, its arguments, what it reads, and words that it must print (or must not, after a dash)."""

    words: str
    expected: tuple[str, ...] = ()
    stdin: str = ""
    since: int = 3
    """The first major release that has it."""


MAJOR = int(VERSION.split(".")[0])
OPTIONS_IN_3 = {
    "--reader-property": "--property",
    "--formatter-property": "--property",
    "--command-property": "--producer-props",
}


# Whoever asks is nobody in particular, and may do everything here.
WITH_RULES = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
)


def run_java_tools(bootstrap: str) -> list[str]:
    """Every step that did not print what it should."""
    with tempfile.TemporaryDirectory(prefix="ottla-java-tools-") as folder:
        return _problems(steps(bootstrap, Path(folder)))


def run_acl_tools(bootstrap: str) -> list[str]:
    """The same of the tool for access rules; the broker has to be one `WITH_RULES`."""
    return _problems(acl_steps(f"--bootstrap-server {bootstrap}"))


def _problems(wanted: Iterator[Step]) -> list[str]:
    problems = []
    for step in wanted:
        tool, *arguments = step.words.split()
        if step.since > MAJOR:
            continue
        if MAJOR == 3:
            arguments = [OPTIONS_IN_3.get(argument, argument) for argument in arguments]
        try:
            output = run_tool(tool, *arguments, stdin=step.stdin, timeout=90)
        except ToolFailed as error:
            problems.append(str(error)[-1000:])
            continue
        problems += [
            f"{step.words}: expected {words!r} in {output!r}"[:1000]
            for words in step.expected
            if (words.removeprefix("-") in output) == words.startswith("-")
        ]
    return problems


def steps(bootstrap: str, folder: Path) -> Iterator[Step]:
    server = f"--bootstrap-server {bootstrap}"
    topic = f"java-{uuid.uuid4().hex[:8]}"
    trim = folder / "trim.json"
    partition = {"topic": topic, "partition": 0, "offset": 2}
    trim.write_text(json.dumps({"partitions": [partition], "version": 1}))

    yield Step(f"topics {server} --create --topic {topic} --config max.message.bytes=50000", (topic,))
    yield Step(
        f"topics {server} --describe --topic {topic}", ("PartitionCount: 1", "max.message.bytes=50000")
    )
    yield Step(
        f"console-producer {server} --topic {topic} --reader-property parse.key=true"
        " --reader-property key.separator=: --compression-codec zstd",
        (),
        "a:one\nb:two\nc:three\n",
    )
    yield Step(f"get-offsets {server} --topic {topic} --time -1", (f"{topic}:0:3",))
    yield Step(f"get-offsets {server} --topic {topic} --time -2", (f"{topic}:0:0",))
    yield Step(
        f"console-consumer {server} --topic {topic} --partition 0 --offset earliest --max-messages 3"
        " --formatter-property print.key=true --formatter-property print.offset=true",
        ("Offset:0\ta\tone", "Offset:2\tc\tthree"),
    )
    yield Step(f"delete-records {server} --offset-json-file {trim}", ("low_watermark: 2",))
    yield Step(f"get-offsets {server} --topic {topic} --time -2", (f"{topic}:0:2",))
    yield Step(
        f"configs {server} --alter --entity-type topics --entity-name {topic}"
        " --add-config retention.ms=77777",
        ("Completed updating config",),
    )
    yield Step(
        f"configs {server} --describe --entity-type topics --entity-name {topic}",
        ("retention.ms=77777", "DYNAMIC_TOPIC_CONFIG:max.message.bytes=50000"),
    )
    yield Step(f"topics {server} --alter --topic {topic} --partitions 4")
    yield Step(f"topics {server} --describe --topic {topic}", ("PartitionCount: 4",))
    yield Step(f"log-dirs {server} --describe --topic-list {topic}", (f'"partition":"{topic}-0"',))
    yield Step(f"transactions {server} describe-producers --topic {topic} --partition 0", ("LastSequence",))
    yield Step(
        f"leader-election {server} --election-type preferred --topic {topic} --partition 0",
        ("Valid replica already",),
    )
    yield Step(f"reassign {server} --list", ("No partition reassignments found",))
    yield Step(f"metadata-quorum {server} describe --status", ("LeaderId:", "HighWatermark:"))
    yield Step(f"metadata-quorum {server} describe --replication", ("Leader",))
    yield Step(f"features {server} describe", ("metadata.version",))
    yield Step(f"cluster cluster-id {server}", ("Cluster ID: ",))
    yield Step(f"cluster list-endpoints {server}", ("unfenced",), since=4)
    usable = ("Produce(0): 0 to 13 [usable: 13]", "[usable: 18]") if MAJOR > 3 else ("to 18 [usable: 17]",)
    yield Step(f"api-versions {server}", usable)
    yield Step(
        f"producer-perf --topic {topic} --num-records 100000 --record-size 100 --throughput -1"
        f" --command-property bootstrap.servers={bootstrap}",
        ("100000 records sent",),
    )
    yield Step(
        f"end-to-end-latency {server} --topic {topic}-echo --num-records 100 --producer-acks all"
        " --record-size 100",
        ("Avg latency",),
        since=4,
    )
    yield Step(f"verifiable-producer {server} --topic {topic} --max-messages 100", ('"acked":100',))
    yield from group_steps(server, topic)
    yield from user_steps(server)
    yield Step(f"topics {server} --delete --topic {topic}")
    yield Step(f"topics {server} --list", (f"-{topic}\n",))


def group_steps(server: str, topic: str) -> Iterator[Step]:
    """Groups of all kinds and their offsets, and transactions; on a topic that has records."""
    classic, modern = (f"{topic}-{kind}" for kind in ("classic", "modern"))
    for group, protocol in ((classic, "classic"), (modern, "consumer")):
        yield Step(
            f"verifiable-consumer {server} --topic {topic} --group-id {group} --group-protocol {protocol}"
            " --reset-policy earliest --max-messages 100",
            ('"name":"partitions_assigned"', '"name":"records_consumed"', '"success":true'),
        )
    yield Step(f"groups {server} --list", (f"{classic} ", f"{modern} "), since=4)
    yield Step(f"consumer-groups {server} --list --type consumer", (modern, f"-{classic}"))
    yield Step(f"consumer-groups {server} --describe --group {classic} --state", ("Empty",))
    yield Step(f"consumer-groups {server} --describe --group {classic} --offsets", (topic,))
    yield Step(
        f"consumer-groups {server} --reset-offsets --group {classic} --topic {topic}:0 --to-latest --execute",
        (topic,),
    )
    yield Step(
        f"consumer-groups {server} --delete-offsets --group {classic} --topic {topic}", ("Successful",)
    )
    yield Step(f"consumer-groups {server} --delete --group {classic}", ("was successful",))
    yield from share_steps(server, topic)
    yield Step(
        f"producer-perf --topic {topic} --num-records 1000 --record-size 100 --throughput -1"
        f" --transactional-id {topic} --transaction-duration-ms 200"
        f" --command-property bootstrap.servers={server.split()[1]}",
        ("1000 records sent",),
    )
    yield Step(f"transactions {server} list", (topic, "CompleteCommit"))
    yield Step(f"transactions {server} describe --transactional-id {topic}", ("CompleteCommit",))
    yield Step(f"transactions {server} find-hanging --broker-id 1")


def share_steps(server: str, topic: str) -> Iterator[Step]:
    share = f"{topic}-share"
    yield Step(
        f"configs {server} --alter --entity-type groups --entity-name {share}"
        " --add-config share.auto.offset.reset=earliest",
        ("Completed updating config",),
        since=4,
    )
    yield Step(
        f"console-share-consumer {server} --topic {topic} --group {share} --max-messages 10"
        " --timeout-ms 30000",
        ("\n",),
        since=4,
    )
    yield Step(f"share-groups {server} --list", (share,), since=4)
    yield Step(f"share-groups {server} --describe --group {share} --offsets", (topic,), since=4)
    yield Step(
        f"share-groups {server} --delete --group {share}", ("Deletion of requested share groups",), since=4
    )


def user_steps(server: str) -> Iterator[Step]:
    """Users with SCRAM credentials. Describing one asks for quotas as well."""
    user = f"java-{uuid.uuid4().hex[:8]}"
    alter = f"configs {server} --alter --entity-type users --entity-name {user}"
    describe = f"configs {server} --describe --entity-type users"
    done = f"Completed updating config for user {user}"
    yield Step(f"{alter} --add-config SCRAM-SHA-256=[iterations=8192,password=secret]", (done,))
    yield Step(f"{alter} --add-config SCRAM-SHA-512=[password=secret]", (done,))
    yield Step(
        f"{describe} --entity-name {user}", ("SCRAM-SHA-256=iterations=8192", "SCRAM-SHA-512=iterations=4096")
    )
    yield Step(f"{alter} --delete-config SCRAM-SHA-256", (done,))
    yield Step(describe, (user, "SCRAM-SHA-512=iterations=4096", "-SCRAM-SHA-256"))
    yield Step(f"{alter} --delete-config SCRAM-SHA-512", (done,))
    yield Step(describe, (f"-{user}",))


def acl_steps(server: str) -> Iterator[Step]:
    """Rules are added by name, by prefix and with the shortcuts, listed, and removed."""
    alice, bob = "--allow-principal User:alice", "--allow-principal User:bob"
    yield Step(f"acls {server} --add {alice} --producer --topic orders", ("(principal=User:alice, host=*,",))
    yield Step(f"acls {server} --add {bob} --consumer --topic orders --group readers", ("User:bob",))
    yield Step(
        f"acls {server} --add --deny-principal User:* --deny-host 10.0.0.7 --operation Delete --topic ord"
        " --resource-pattern-type prefixed",
        ("host=10.0.0.7, operation=DELETE, permissionType=DENY",),
    )
    yield Step(f"acls {server} --add {alice} --operation All --cluster", ("name=kafka-cluster",))
    yield Step(
        f"acls {server} --list",
        ("User:alice", "User:bob", "User:*", "resourceType=CLUSTER", "resourceType=GROUP, name=readers"),
    )
    applying = f"acls {server} --list --topic orders --resource-pattern-type match"
    yield Step(applying, ("operation=WRITE", "patternType=PREFIXED", "-CLUSTER"))
    yield Step(f"acls {server} --list --principal User:bob", ("resourceType=GROUP", "resourceType=TOPIC"))
    yield Step(f"acls {server} --remove {bob} --consumer --topic orders --group readers --force")
    yield Step(f"acls {server} --list", ("User:alice", "-User:bob"))
    yield Step(f"acls {server} --remove --topic ord --resource-pattern-type prefixed --force")
    yield Step(applying, ("User:alice", "-PREFIXED"))
    yield Step(f"acls {server} --remove --topic orders --force")
    yield Step(f"acls {server} --remove --cluster --force")
    yield Step(f"acls {server} --list", ("-User:",))
