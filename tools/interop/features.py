"""The features: what is there before the client runs, and what it must have seen when it is done.

A client program is thin: it does what interop/README.md says for the feature and reports what it saw. What
it should have seen is decided here, once for all clients, together with what the broker then holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.client.partitioner import partition_of_key
from tools.interop.stage import PARTITIONS, RECORDS, Stage
from tools.interop.witness import fetch_batches

Report = dict[str, Any]
Prepare = Callable[[Stage], None]
Judge = Callable[[Stage, Report], list[str]]

FIRST_TIMESTAMP = 1_600_000_000_000


class Feature(NamedTuple):
    name: str
    about: str
    prepare: Prepare
    judge: Judge


def expect(what: str, found: object, wanted: object) -> list[str]:
    return [] if found == wanted else [f"{what}: {str(found)[:300]}, not {str(wanted)[:300]}"]


# --- before ---------------------------------------------------------------------------------------------


def nothing(stage: Stage) -> None:
    pass


def a_topic(stage: Stage) -> None:
    stage.create_topic()


def a_full_topic(stage: Stage) -> None:
    stage.create_topic()
    stage.fill()


def a_topic_of_each_time(stage: Stage) -> None:
    stage.create_topic()
    stage.create_topic("-append", config={"message.timestamp.type": "LogAppendTime"})


def three_transactions(stage: Stage) -> None:
    stage.create_topic()
    for suffix, end in (("first", "commit"), ("second", "abort"), ("third", "commit"), ("fourth", "open")):
        stage.transaction(suffix, [f"{suffix}-{number}" for number in range(4)], end)


def a_shared_topic(stage: Stage) -> None:
    a_full_topic(stage)
    stage.share_from_the_start()


def an_empty_group(stage: Stage) -> None:
    a_full_topic(stage)
    stage.commit_offsets(dict.fromkeys(range(PARTITIONS), 5))


# --- after ----------------------------------------------------------------------------------------------


def saw_all(stage: Stage, report: Report) -> list[str]:
    """The hundred records, each partition in the order in which it was sent."""
    problems = []
    for partition in range(PARTITIONS):
        records = [record for record in report["records"] if record["p"] == partition]
        numbers = range(partition, RECORDS, PARTITIONS)
        problems += expect("offsets", [record["o"] for record in records], list(range(len(numbers))))
        problems += expect("keys", [record["k"] for record in records], [f"key-{n}" for n in numbers])
        values = [record["v"].split()[0] for record in records]
        problems += expect("values", values, [f"value-{n}" for n in numbers])
    return problems


def compressed_with(codec: str) -> Judge:
    def judge(stage: Stage, report: Report) -> list[str]:
        used = {
            batch.codec
            for partition in range(PARTITIONS)
            for batch in fetch_batches(stage.bootstrap, stage.name, partition)
        }
        return saw_all(stage, report) + expect("codecs in the log", used, {codec})

    return judge


def saw_headers(stage: Stage, report: Report) -> list[str]:
    wanted = [["a", "1"], ["a", "2"], ["empty", ""], ["näme", "wért"]]
    if "null header values" not in report.get("without", ()):
        wanted.append(["null", None])
    if "repeated header names" in report.get("without", ()):
        wanted.pop(0)
    found = [sorted(record["h"], key=str) for record in report["records"]]
    return expect("headers", found, [sorted(wanted, key=str), []])


def saw_keys(stage: Stage, report: Report) -> list[str]:
    """Java's default partitioner, on which producers of all languages have to agree."""
    found = {record["k"]: record["p"] for record in report["records"]}
    wanted = {f"key-{n}": partition_of_key(b"key-%d" % n, PARTITIONS) for n in range(50)}
    empty = [record["k"] for record in report["records"] if record["v"] is None]
    return expect("partitions of keys", found, wanted) + expect("keys without a value", empty, ["key-49"])


def saw_timestamps(stage: Stage, report: Report) -> list[str]:
    times = [FIRST_TIMESTAMP + 1000 * number for number in range(10)]
    problems = expect("create times", [record["t"] for record in report["records"]], times)
    appended = [record["t"] for record in report["appended"]]
    if len(appended) != 10 or min(appended) < FIRST_TIMESTAMP * 1.05:
        problems.append(f"append times: {appended}")
    return problems + expect("offset at a time", report["offset"], 5)


def saw_sequences(stage: Stage, report: Report) -> list[str]:
    problems = saw_all(stage, report)
    for partition in range(PARTITIONS):
        batches = fetch_batches(stage.bootstrap, stage.name, partition)
        if any(batch.producer_id < 0 for batch in batches):
            problems.append("batches without a producer id")
        following = 0
        for batch in batches:
            problems += expect("sequence number", batch.base_sequence, following)
            following += batch.record_count
    return problems


def saw_transactions(stage: Stage, report: Report) -> list[str]:
    committed = [f"first-{n}" for n in range(4)] + [f"third-{n}" for n in range(4)]
    aborted = [f"second-{n}" for n in range(4)]
    problems = expect("committed records", values(report["records"]), sorted(committed))
    problems += expect("all records", values(report["all"]), sorted(committed + aborted))
    if "offsets in transactions" not in report.get("without", ()):
        problems += expect("offset of the group", report["committed"], 7)
    batches = fetch_batches(stage.bootstrap, stage.name, 0)
    kinds = [("marker" if batch.control else "records") for batch in batches if batch.transactional]
    return problems + expect("batches of partition 0", kinds, ["records", "marker"] * 3)


def saw_committed(stage: Stage, report: Report) -> list[str]:
    committed = [f"first-{n}" for n in range(4)] + [f"third-{n}" for n in range(4)]
    others = [f"second-{n}" for n in range(4)] + [f"fourth-{n}" for n in range(4)]
    problems = expect("committed records", values(report["records"]), sorted(committed))
    return problems + expect("all records", values(report["all"]), sorted(committed + others))


def saw_group(stage: Stage, report: Report) -> list[str]:
    """Two members with two partitions each; at least once everything, and all of it committed."""
    shares = sorted(len(partitions) for partitions in report["assigned"])
    problems = expect("partitions of the members", shares, [2, 2])
    union = sorted(partition for partitions in report["assigned"] for partition in partitions)
    problems += expect("partitions of all", union, list(range(PARTITIONS)))
    problems += expect("values", set(values(report["records"])), {f"value-{n}" for n in range(RECORDS)})
    committed = {str(partition): offset for partition, offset in report["committed"].items()}
    return problems + expect(
        "committed", committed, {str(n): RECORDS // PARTITIONS for n in range(PARTITIONS)}
    )


def of_type(kind: str) -> Judge:
    """The group as the broker describes it, so that a client cannot pass by using the other protocol."""

    def judge(stage: Stage, report: Report) -> list[str]:
        listed = stage.admin.list_consumer_groups().result(30).valid
        found = [group.type.name.lower() for group in listed if group.group_id == stage.name]
        return saw_group(stage, report) + expect("type of the group", found, [kind])

    return judge


def saw_shared(stage: Stage, report: Report) -> list[str]:
    wanted = sorted(f"value-{n}" for n in range(RECORDS))
    problems = expect("accepted records", values(report["records"]), wanted)
    return problems + expect("deliveries of a released record", report["deliveries"], 2)


def saw_static(stage: Stage, report: Report) -> list[str]:
    """A member that comes back under its instance id finds its partitions, and nobody else was disturbed."""
    before, other, after = report["before"], report["other"], report["after"]
    problems = expect("partitions of both", sorted(before + other), list(range(PARTITIONS)))
    problems += expect("partitions after coming back", sorted(after), sorted(before))
    return problems + expect("rebalances of the other member", report["rebalances"], 0)


def saw_topics(stage: Stage, report: Report) -> list[str]:
    problems = expect("partitions", report["partitions"], 3)
    problems += expect("listed", report["listed"], True)
    if "describing configurations" not in report.get("without", ()):
        problems += expect("retention.ms", report["retention"], "100000")
    return problems + expect("listed when deleted", report["gone"], True)


def saw_configs(stage: Stage, report: Report) -> list[str]:
    problems = expect("max.message.bytes before", report["before"], "1048588")
    problems += expect("max.message.bytes set", report["set"], "77777")
    return problems + expect("max.message.bytes reset", report["after"], "1048588")


def saw_partitions(stage: Stage, report: Report) -> list[str]:
    return expect("partitions", report["partitions"], 6)


def saw_groups(stage: Stage, report: Report) -> list[str]:
    problems = expect("listed", report["listed"], True)
    problems += expect("state", str(report["state"]).lower(), "empty")
    if "deleting groups" not in report.get("without", ()):
        problems += expect("listed when deleted", report["gone"], True)
    return problems


def saw_offsets(stage: Stage, report: Report) -> list[str]:
    without = report.get("without", ())
    problems = expect("earliest and latest", [report["earliest"], report["latest"]], [0, 25])
    problems += expect("committed", report["committed"], 5)
    if "altering offsets" not in without:
        problems += expect("altered", report["altered"], 10)
    if "deleting offsets" not in without:
        problems += expect("deleted", report["deleted"], True)
    return problems


def saw_deleted_records(stage: Stage, report: Report) -> list[str]:
    return expect("earliest offset", report["earliest"], 10)


def saw_old(stage: Stage, report: Report) -> list[str]:
    return saw_all(stage, report) + expect("committed", report["committed"], RECORDS // PARTITIONS)


def values(records: list[Report]) -> list[str]:
    return sorted(record["v"] for record in records)


FEATURES = {
    feature.name: feature
    for feature in (
        Feature("produce", "produce and consume", a_topic, saw_all),
        Feature("gzip", "gzip", a_topic, compressed_with("gzip")),
        Feature("snappy", "snappy", a_topic, compressed_with("snappy")),
        Feature("lz4", "lz4", a_topic, compressed_with("lz4")),
        Feature("zstd", "zstd", a_topic, compressed_with("zstd")),
        Feature("headers", "record headers", a_topic, saw_headers),
        Feature("keys", "keys, tombstones, Java's partitioner", a_topic, saw_keys),
        Feature("timestamps", "timestamps, offsets by time", a_topic_of_each_time, saw_timestamps),
        Feature("idempotence", "idempotent producer", a_topic, saw_sequences),
        Feature("transactions", "transactions, with offsets", a_topic, saw_transactions),
        Feature(
            "read-committed", "read_committed past an open transaction", three_transactions, saw_committed
        ),
        Feature("group-classic", "group of two, classic protocol", a_full_topic, of_type("classic")),
        Feature("group-consumer", "group of two, consumer protocol", a_full_topic, of_type("consumer")),
        Feature("group-share", "share group of two, with a release", a_shared_topic, saw_shared),
        Feature("static", "static members", a_full_topic, saw_static),
        Feature("admin-topics", "create, describe, list and delete topics", nothing, saw_topics),
        Feature("admin-configs", "describe and alter configurations", a_topic, saw_configs),
        Feature("admin-partitions", "add partitions", a_topic, saw_partitions),
        Feature("admin-groups", "list, describe and delete groups", an_empty_group, saw_groups),
        Feature("admin-offsets", "list, alter and delete offsets", an_empty_group, saw_offsets),
        Feature("admin-records", "delete records", a_full_topic, saw_deleted_records),
        Feature("old-versions", "the client held to the protocol of Kafka 2.1", a_topic, saw_old),
    )
}
