"""Judges of records: what was written, how it lies in the log, and what was read."""

from __future__ import annotations

from ottla.client.partitioner import partition_of_key
from tools.interop.aged import NEWEST
from tools.interop.judges.evidence import (
    Judge,
    Report,
    asked,
    committed,
    expect,
    logs,
    saw,
    stored,
    without,
)
from tools.interop.stage import PARTITIONS, RECORDS, Stage

FIRST_TIMESTAMP = 1_600_000_000_000
COMPRESSIBLE = " compressible" * 20
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def saw_all(stage: Stage, report: Report, suffix: str = "") -> list[str]:
    """The hundred records, in the log and as read, each partition in the order in which it was sent."""
    wanted = [
        (partition, offset, f"key-{number}", f"value-{number}{suffix}")
        for partition in range(PARTITIONS)
        for offset, number in enumerate(range(partition, RECORDS, PARTITIONS))
    ]
    records = stored(stage)
    found = [(record.partition, record.offset, record.key, record.value) for record in records]
    problems = expect("records in the log", found, wanted) + asked(stage, "produce", "fetch")
    return problems + saw("records", report["records"], records)


def compressed_with(codec: str) -> Judge:
    def judge(stage: Stage, report: Report) -> list[str]:
        used = {batch.codec for log in logs(stage) for batch in log.batches}
        return saw_all(stage, report, COMPRESSIBLE) + expect("codecs in the log", used, {codec})

    return judge


def saw_headers(stage: Stage, report: Report) -> list[str]:
    wanted: list[list[str | None]] = [["a", "1"], ["a", "2"], ["empty", ""], ["näme", "wért"]]
    if not without(report, "null header values"):
        wanted.append(["null", None])
    if without(report, "repeated header names"):
        wanted.pop(0)
    records = stored(stage)
    problems = asked(stage, "produce", "fetch")
    problems += expect("headers in the log", [record.headers for record in records], [wanted, []])
    # Clients that show headers as a map may have their own order; the log may not.
    found = [sorted(record["h"], key=str) for record in report["records"]]
    problems += expect("headers that were read", found, [sorted(wanted, key=str), []])
    return problems + saw("records", report["records"], records)


def saw_keys(stage: Stage, report: Report) -> list[str]:
    """Java's default partitioner, on which producers of all languages have to agree."""
    records = stored(stage)
    found = {record.key: record.partition for record in records}
    wanted = {f"key-{n}": partition_of_key(b"key-%d" % n, PARTITIONS) for n in range(50)}
    problems = asked(stage, "produce", "fetch")
    problems += expect("partitions of keys", found, wanted) + expect("records", len(records), 50)
    values = {record.key: record.value for record in records}
    wanted_values = {f"key-{n}": f"value-{n}" for n in range(49)} | {"key-49": None}
    problems += expect("values of keys", values, wanted_values)
    return problems + saw("records", report["records"], records)


def saw_timestamps(stage: Stage, report: Report) -> list[str]:
    times = [FIRST_TIMESTAMP + 1000 * number for number in range(10)]
    created, appended = stored(stage), stored(stage, "-append")
    problems = asked(stage, "produce", "fetch", "list_offsets")
    problems += expect("create times in the log", [record.timestamp for record in created], times)
    problems += expect("create times that were read", [record["t"] for record in report["records"]], times)
    if not all(batch.append_time for log in logs(stage, "-append") for batch in log.batches):
        problems.append("batches of a topic with append times say that they have create times")
    found = [record["t"] for record in report["appended"]]
    if len(found) != 10 or min(found) < FIRST_TIMESTAMP * 1.05:
        problems.append(f"append times: {found}")
    problems += expect("append times that were read", found, [record.timestamp for record in appended])
    wanted = {
        partition.timestamp
        for said in stage.traffic.of("list_offsets")
        for topic in said.request.topics
        for partition in topic.partitions
    }
    if FIRST_TIMESTAMP + 4500 not in wanted:
        problems.append("nobody asked for the offset at a time")
    return problems + expect("offset at a time", report["offset"], 5)


def saw_sequences(stage: Stage, report: Report) -> list[str]:
    problems = saw_all(stage, report) + asked(stage, "init_producer_id")
    for log in logs(stage):
        if any(batch.producer_id < 0 for batch in log.batches):
            problems.append("batches without a producer id")
        following = 0
        for batch in log.batches:
            problems += expect("sequence number", batch.base_sequence, following)
            following += batch.record_count
    return problems


def saw_transactions(stage: Stage, report: Report) -> list[str]:
    problems = asked(stage, "init_producer_id", "end_txn", "txn_offset_commit")
    producers = set()
    for partition, log in enumerate(logs(stage)):
        kinds = [batch.marker or "records" for batch in log.batches if batch.transactional]
        wanted = ["records", "commit", "records", "abort", "records", "commit"]
        problems += expect(f"batches of partition {partition}", kinds, wanted)
        values = [record.value for record in log.records]
        problems += expect("values", values, [f"{word}-{partition}" for word in ("first", "second", "third")])
        producers |= {batch.producer_id for batch in log.batches}
    if len(producers) != 1:
        problems.append(f"one transactional id, but producer ids {producers}")
    problems += expect("the group's offset at the broker", committed(stage).get(0), 7)
    problems += expect("offset of the group that was read", report["committed"], 7)
    return problems + saw_isolated(stage, report, "second")


def saw_committed(stage: Stage, report: Report) -> list[str]:
    return saw_isolated(stage, report, "second", "fourth")


def saw_isolated(stage: Stage, report: Report, *hidden: str) -> list[str]:
    """All records read uncommitted; read committed, those but for aborted and open transactions."""
    records = stored(stage)
    visible = [record for record in records if not (record.value or "").startswith(hidden)]
    levels = {said.request.isolation_level for said in stage.traffic.of("fetch")}
    problems = expect("isolation levels of fetches", levels, {READ_UNCOMMITTED, READ_COMMITTED})
    problems += expect("records in the log", (len(visible), len(records)), (8, 8 + 4 * len(hidden)))
    problems += saw("committed records", report["records"], visible)
    return problems + saw("all records", report["all"], records)


def saw_old(stage: Stage, report: Report) -> list[str]:
    problems = saw_all(stage, report) + asked(stage, "join_group", "sync_group", "offset_commit")
    for said in stage.traffic.said:
        # A client finds out how old the broker is by asking for versions, in the newest way it knows.
        if said.version > NEWEST.get(said.api, -1) and said.api != "api_versions":
            problems.append(f"{said.api} version {said.version} was not known to Kafka 2.1")
    problems += expect("the group's offset at the broker", committed(stage).get(0), RECORDS // PARTITIONS)
    return problems + expect("committed", report["committed"], RECORDS // PARTITIONS)
