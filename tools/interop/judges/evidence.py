"""The questions that judges of all features ask."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

from tools.interop.stage import PARTITIONS, SECONDS, Stage
from tools.interop.witness import Log, Record, fetch_log

Report = dict[str, Any]
Judge = Callable[[Stage, Report], list[str]]


NO_COORDINATOR_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)

PARTS = {
    "null header values",
    "repeated header names",
    "describing configurations",
    "deleting groups",
    "altering offsets",
    "deleting offsets",
}
"""What a program may say its client has no call for."""


def expect(what: str, found: object, wanted: object) -> list[str]:
    return [] if found == wanted else [f"{what}: {str(found)[:300]}, not {str(wanted)[:300]}"]


def without(report: Report, part: str) -> bool:
    return part in report.get("without", ())


def asked(stage: Stage, *apis: str | Collection[str]) -> list[str]:
    """Requests without which the feature was not used; of several names any one will do."""
    sent = stage.traffic.apis()
    wanted = [{api} if isinstance(api, str) else set(api) for api in apis]
    return [f"no request on the wire: {' or '.join(sorted(names))}" for names in wanted if not names & sent]


def logs(stage: Stage, suffix: str = "") -> list[Log]:
    name = stage.name + suffix
    return [fetch_log(stage.bootstrap, name, partition) for partition in range(PARTITIONS)]


def stored(stage: Stage, suffix: str = "") -> list[Record]:
    return [record for log in logs(stage, suffix) for record in log.records]


def saw(what: str, reported: list[Report], records: list[Record]) -> list[str]:
    """What the client read is what is in the log, and each partition came in order."""
    found = sorted(reported, key=lambda record: int(record["p"]))
    places = [(record["p"], record["o"], record["k"], record["v"]) for record in found]
    wanted = [(record.partition, record.offset, record.key, record.value) for record in records]
    return expect(f"{what} that were read", places, wanted)


def committed(stage: Stage) -> dict[int, int]:
    """The group's offsets, as the broker tells the stage, which waits until their coordinator is there."""
    # By a consumer: an AdminClient (2.16) may crash when it asks a coordinator that is not there yet.
    consumer = Consumer(stage.settings | {"group.id": stage.name})
    try:
        every = [TopicPartition(stage.name, partition) for partition in range(PARTITIONS)]
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                found = consumer.committed(every, timeout=SECONDS)
                return {at.partition: at.offset for at in found if at.error is None and at.offset >= 0}
            except KafkaException as error:
                if error.args[0].code() not in NO_COORDINATOR_YET or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        consumer.close()


def group_type(stage: Stage) -> str:
    """Nothing if there is no such group."""
    listed = stage.admin.list_consumer_groups().result(SECONDS).valid
    found = [group.type.name.lower() for group in listed if group.group_id == stage.name]
    return found[0] if found else ""


def partitions_of(stage: Stage, name: str) -> int:
    """Nought if there is no such topic."""
    topics = stage.admin.list_topics(timeout=SECONDS).topics
    return len(topics[name].partitions) if name in topics else 0


def setting(stage: Stage, name: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, stage.name)
    return str(stage.admin.describe_configs([resource])[resource].result(SECONDS)[name].value)


def earliest(stage: Stage) -> int:
    asked_for = {TopicPartition(stage.name, 0): OffsetSpec.earliest()}
    [found] = stage.admin.list_offsets(asked_for).values()
    return int(found.result(SECONDS).offset)
