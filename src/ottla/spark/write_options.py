"""The options of a write: named, parsed and checked as Spark's Kafka connector does. Pure: no Spark, no
broker.

What is given with the prefix `kafka.` are properties of Kafka's producer. Those that tune what this sink does
otherwise are taken and have no effect; those that would promise something it does not do are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ottla.client.errors import BadSecurity
from ottla.client.security import PLAINTEXT, Security, is_security_property
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from ottla.spark.properties import BadOption, boolean, number, refuse_unknown, split

EXACTLY_ONCE: Final = "exactly_once"
AT_LEAST_ONCE: Final = "at_least_once"

OPTIONS: Final = (
    "topic",
    "semantic",
    "includeTimestamp",
    "includeHeaders",
    "checkpointLocation",
    "queryName",
)
# Those of a read, so that whoever uses one set of options for both is told.
READ_OPTIONS: Final = ("subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets")

PRODUCER_PROPERTIES: Final = """
    acks batch.size bootstrap.servers buffer.memory client.dns.lookup client.id compression.gzip.level
    compression.lz4.level compression.type compression.zstd.level config.providers connections.max.idle.ms
    delivery.timeout.ms enable.idempotence enable.metrics.push interceptor.classes key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.age.ms
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms send.buffer.bytes
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id value.serializer
"""
REFUSED_PROPERTIES: Final = {
    "key.serializer": "keys are written as they are: make them binary or strings with DataFrame operations",
    "value.serializer": "values are written as they are: make them binary or strings with DataFrame "
    "operations",
    "interceptor.classes": "there is no Java producer that it could intercept",
    "partitioner.class": "there is no Java producer that it could be loaded by; write a column 'partition'",
    "transactional.id": "the sink has one for each task, from the id of the query",
    "transaction.two.phase.commit.enable": "the sink ends its transactions itself",
}
CODECS: Final = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}

DEFAULT_CLIENT_ID: Final = "ottla-spark-sink"
DEFAULT_MAX_REQUEST_SIZE: Final = 1024 * 1024  # Kafka's
DEFAULT_BATCH_SIZE: Final = 512 * 1024
"""Kafka's producer has 16 KiB, for records that come one by one; here they come by the ten thousand."""
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 15 * 60_000
"""The most that a broker allows unless told otherwise (transaction.max.timeout.ms). A transaction is open
from the first row of its task until the last task of the job has ended: a minute, as in Kafka's producer, is
short."""
DEFAULT_DELIVERY_TIMEOUT_MS: Final = 120_000  # Kafka's


@dataclass(frozen=True)
class WriteOptions:
    """What a write was asked for."""

    bootstrap: str
    topic: str | None = None
    exactly_once: bool = True
    include_timestamp: bool = False
    client_id: str = DEFAULT_CLIENT_ID
    security: Security = PLAINTEXT
    codec: int = NONE
    level: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    max_request_size: int = DEFAULT_MAX_REQUEST_SIZE
    ignore_keys: bool = False
    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    delivery_timeout_ms: int = DEFAULT_DELIVERY_TIMEOUT_MS


def parse_write(options: Mapping[str, str]) -> WriteOptions:
    """Check the options of a write. Raises `BadOption`."""
    own, kafka = split(options)
    _check_own(own)
    _check_kafka(kafka)
    bootstrap = kafka.get("bootstrap.servers", "").strip()
    if not bootstrap:
        raise BadOption("option 'kafka.bootstrap.servers' is missing: the address of a broker, as host:port")
    exactly_once = _semantic(own) == EXACTLY_ONCE
    _check_acks(kafka, exactly_once)
    codec, level = _compression(kafka)
    try:
        security = Security.from_properties(
            {name: value for name, value in kafka.items() if is_security_property(name)}
        )
    except BadSecurity as error:
        raise BadOption(f"option 'kafka.{error}" if str(error).startswith("ssl.") else str(error)) from None
    max_request_size = _number(kafka, "max.request.size", DEFAULT_MAX_REQUEST_SIZE)
    return WriteOptions(
        bootstrap=bootstrap,
        topic=own.get("topic", "").strip() or None,
        exactly_once=exactly_once,
        include_timestamp=boolean("includeTimestamp", own.get("includetimestamp", "false")),
        client_id=kafka.get("client.id") or DEFAULT_CLIENT_ID,
        security=security,
        codec=codec,
        level=level,
        batch_size=min(_number(kafka, "batch.size", DEFAULT_BATCH_SIZE), max_request_size),
        max_request_size=max_request_size,
        ignore_keys=boolean("kafka.partitioner.ignore.keys", kafka.get("partitioner.ignore.keys", "false")),
        transaction_timeout_ms=_number(kafka, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS),
        delivery_timeout_ms=_number(kafka, "delivery.timeout.ms", DEFAULT_DELIVERY_TIMEOUT_MS),
    )


def _check_own(own: Mapping[str, str]) -> None:
    if "path" in own:
        raise BadOption(
            "a topic is written, not a path: write .option('topic', 'name') and .save() without a path"
        )
    for name in READ_OPTIONS:
        if name.lower() in own:
            raise BadOption(f"option '{name}' is for reading; what is written goes to the option 'topic'")
    refuse_unknown(own, OPTIONS)


def _check_kafka(kafka: Mapping[str, str]) -> None:
    for name, reason in REFUSED_PROPERTIES.items():
        if name in kafka:
            raise BadOption(f"option 'kafka.{name}' is not supported: {reason}")
    plain = [name for name in kafka if not is_security_property(name)]
    refuse_unknown(plain, PRODUCER_PROPERTIES.split(), prefix="kafka.", client="producer")


def _semantic(own: Mapping[str, str]) -> str:
    text = own.get("semantic", EXACTLY_ONCE).strip().lower().replace("-", "_")
    if text not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise BadOption(
            f"option 'semantic' is {EXACTLY_ONCE} (the default) or {AT_LEAST_ONCE}, not '{own['semantic']}'"
        )
    return text


def _check_acks(kafka: Mapping[str, str], exactly_once: bool) -> None:
    """Whatever it is, everything is written with acks=all: the batches of an idempotent producer have to
    be."""
    text = kafka.get("acks", "all").strip().lower()
    if text not in ("all", "-1", "0", "1"):
        raise BadOption(f"option 'kafka.acks' is all, 1 or 0, not '{text}'")
    if exactly_once and text in ("0", "1"):
        raise BadOption(
            f"option 'kafka.acks' is {text}, and a transaction needs all: leave it out, or set "
            f"'semantic' to {AT_LEAST_ONCE}"
        )


def _compression(kafka: Mapping[str, str]) -> tuple[int, int | None]:
    name = kafka.get("compression.type", "none").strip().lower()
    if name not in CODECS:
        raise BadOption(f"option 'kafka.compression.type' is one of {', '.join(CODECS)}, not '{name}'")
    level = kafka.get(f"compression.{name}.level")
    if level is None:
        return CODECS[name], None
    return CODECS[name], number(f"kafka.compression.{name}.level", level, at_least=-(1 << 17))


def _number(kafka: Mapping[str, str], name: str, default: int) -> int:
    text = kafka.get(name)
    return default if text is None else number(f"kafka.{name}", text, at_least=1)
