"""The options of a read: named, parsed and checked as Spark's Kafka connector does. Pure.

What the connector ignores without a word (a misspelt option, an ending for a stream) is refused here, in
words that say what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.core.types import TopicPartition
from ottla.spark.consumer_properties import (
    DEFAULT_TIMEOUT_MS,
    READ_COMMITTED,
    check_crcs,
    check_properties,
    isolation_level,
    max_fetch_bytes,
    timeout,
)
from ottla.spark.offsets import EARLIEST, LATEST, BadOffsets, Offsets, describe, parse_offsets
from ottla.spark.positions import (
    At,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    Position,
    check_order,
)
from ottla.spark.properties import BadOption, boolean, number, refuse_unknown, split
from ottla.spark.subscription import Subscription, parse_subscription

OPTIONS: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "isolation.level",
    "commitOffsets",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
)
ENDINGS: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "commitOffsets")

DEFAULT_CLIENT_ID: Final = "ottla-spark"
DEFAULT_MAX_TRIGGER_DELAY_MS: Final = 15 * 60_000
_UNITS: Final = {
    "us": 0.001,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


@dataclass(frozen=True)
class ReadOptions:
    """What a read was asked for. `warnings` are for the log: options that have no effect here."""

    bootstrap: str
    subscription: Subscription
    starting: Position
    ending: Position = field(default_factory=Latest)
    properties: Mapping[str, str] = field(default_factory=dict)
    fail_on_data_loss: bool = True
    include_headers: bool = False
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = DEFAULT_MAX_TRIGGER_DELAY_MS
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    client_id: str = DEFAULT_CLIENT_ID
    group_id: str | None = None
    commit_offsets: bool = False
    isolation_level: int = 0
    check_crcs: bool = True
    max_fetch_bytes: int | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    fetch_offset_attempts: int = 3
    fetch_offset_retry_ms: int = 1000
    partition_cache_ms: int = -1
    warnings: tuple[str, ...] = ()

    @property
    def read_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED


def parse_read(options: Mapping[str, str], *, streaming: bool | None = None) -> ReadOptions:
    """Check the options of a read; `streaming` is None while that is not known. Raises `BadOption`."""
    own, kafka = split(options)
    if "path" in own:
        raise BadOption(
            "a topic is read, not a path: write .option('subscribe', 'topic') and .load() without path"
        )
    refuse_unknown(own, OPTIONS)
    check_properties(kafka)
    bootstrap = kafka.get("bootstrap.servers", "").strip()
    if not bootstrap:
        raise BadOption("option 'kafka.bootstrap.servers' is missing: the address of a broker, as host:port")
    warnings: list[str] = []
    starting = _starting(own, Earliest() if streaming is False else Latest(), warnings)
    ending = _ending(own, warnings)
    if streaming is True:
        _check_stream(own)
    elif streaming is False:
        _check_batch(own, starting, ending, warnings)
    minimum, maximum = _optional(own, "minOffsetsPerTrigger"), _optional(own, "maxOffsetsPerTrigger")
    if minimum is not None and maximum is not None and minimum > maximum:
        raise BadOption(f"minOffsetsPerTrigger ({minimum}) is higher than maxOffsetsPerTrigger ({maximum})")
    group_id = kafka.get("group.id", "").strip() or None
    commits = boolean("commitOffsets", own.get("commitoffsets", "false"))
    if commits and group_id is None:
        raise BadOption("option 'commitOffsets' needs 'kafka.group.id': the group that shows the progress")
    if group_id is not None and "groupidprefix" in own:
        warnings.append("option groupIdPrefix is ignored, as kafka.group.id is set")
    return ReadOptions(
        bootstrap=bootstrap,
        subscription=parse_subscription(own),
        starting=starting,
        ending=ending,
        properties=kafka,
        fail_on_data_loss=boolean("failOnDataLoss", own.get("failondataloss", "true")),
        include_headers=boolean("includeHeaders", own.get("includeheaders", "false")),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay_ms=_max_trigger_delay(own),
        min_partitions=_optional(own, "minPartitions"),
        max_records_per_partition=_optional(own, "maxRecordsPerPartition"),
        client_id=kafka.get("client.id") or own.get("groupidprefix") or DEFAULT_CLIENT_ID,
        group_id=group_id,
        commit_offsets=commits,
        isolation_level=isolation_level(own, kafka),
        check_crcs=check_crcs(kafka),
        max_fetch_bytes=max_fetch_bytes(kafka),
        timeout_ms=timeout(own, kafka),
        fetch_offset_attempts=number(
            "fetchOffset.numRetries", own.get("fetchoffset.numretries", "3"), at_least=1
        ),
        fetch_offset_retry_ms=number(
            "fetchOffset.retryIntervalMs", own.get("fetchoffset.retryintervalms", "1000"), at_least=0
        ),
        partition_cache_ms=number(
            "partition.metadata.cache.ttl.ms", own.get("partition.metadata.cache.ttl.ms", "-1"), at_least=-1
        ),
        warnings=tuple(warnings),
    )


def _check_stream(own: Mapping[str, str]) -> None:
    for name in ENDINGS:
        if name.lower() in own:
            raise BadOption(f"option '{name}' is for batch queries: a stream has no end")


def _check_batch(own: Mapping[str, str], starting: Position, ending: Position, warnings: list[str]) -> None:
    if isinstance(starting, Latest):
        raise BadOption("startingOffsets cannot be latest in a batch query: it would read nothing")
    if isinstance(ending, Earliest):
        raise BadOption("endingOffsets cannot be earliest in a batch query: it would read nothing")
    if isinstance(starting, At):
        _refuse_offset(starting.offsets, LATEST, "startingOffsets", "latest (-1)")
    if isinstance(ending, At):
        _refuse_offset(ending.offsets, EARLIEST, "endingOffsets", "earliest (-2)")
    check_order(starting, ending)
    warnings.extend(
        f"option {name} is ignored in batch queries" for name in STREAM_ONLY if name.lower() in own
    )


def _refuse_offset(offsets: Offsets, refused: int, name: str, word: str) -> None:
    partitions = [partition for partition, offset in offsets.items() if offset == refused]
    if partitions:
        raise BadOption(f"{name} of {describe(partitions)} cannot be {word} in a batch query")


def _starting(own: Mapping[str, str], default: Position, warnings: list[str]) -> Position:
    strategy = own.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise BadOption(f"option 'startingOffsetsByTimestampStrategy' is error or latest, not '{strategy}'")
    return _position(own, "starting", default, strategy == "latest", warnings)


def _ending(own: Mapping[str, str], warnings: list[str]) -> Position:
    # A time that no record has reached yet ends at the end of the log, whatever the strategy of the start.
    return _position(own, "ending", Latest(), True, warnings)


def _position(
    own: Mapping[str, str], which: str, default: Position, else_latest: bool, warnings: list[str]
) -> Position:
    """One time for all partitions wins over times, and these over offsets, as in the connector."""
    names = [f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"]
    given = [name for name in names if name.lower() in own]
    if not given:
        return default
    warnings.extend(f"option {name} is ignored, as {given[0]} is set" for name in given[1:])
    name, text = given[0], own[given[0].lower()].strip()
    if name == names[0]:
        return AtTimestamp(number(name, text, at_least=0), else_latest)
    if name == names[1]:
        return AtTimestamps(_json(name, text), else_latest)
    match text.lower():
        case "earliest":
            return Earliest()
        case "latest":
            return Latest()
    offsets = _json(name, text)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise BadOption(f"option '{name}': an offset is 0 or more, -1 for latest or -2 for earliest: {text}")
    return At(offsets)


def _json(name: str, text: str) -> dict[TopicPartition, int]:
    try:
        return parse_offsets(text)
    except BadOffsets as error:
        words = " is earliest, latest or" if name.endswith("Offsets") else " is"
        raise BadOption(f"option '{name}'{words} JSON: {error}") from None


def _optional(own: Mapping[str, str], name: str) -> int | None:
    text = own.get(name.lower())
    return None if text is None else number(name, text, at_least=1)


def _max_trigger_delay(own: Mapping[str, str]) -> int:
    text = own.get("maxtriggerdelay")
    if text is None:
        return DEFAULT_MAX_TRIGGER_DELAY_MS
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or (match[2] or "ms") not in _UNITS:
        raise BadOption(f"option 'maxTriggerDelay' is a time such as 30s, 15m or 1h, not '{text}'")
    return int(int(match[1]) * _UNITS[match[2] or "ms"])
