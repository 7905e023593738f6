"""The properties of Kafka's consumer as options of a read: used, taken without effect, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.spark.properties import BadOption, boolean, number, refuse_unknown

SECURITY_PREFIXES: Final = ("ssl.", "sasl.", "security.")
# Those that do not begin with one of the above. Most tune what this source does in another way, and are taken
# without effect, so that the options of a query for Spark's Kafka connector can stay as they are.
CONSUMER_PROPERTIES: Final = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset bootstrap.servers check.crcs
    client.dns.lookup client.id client.rack config.providers connections.max.idle.ms default.api.timeout.ms
    enable.auto.commit enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retry.backoff.max.ms retry.backoff.ms send.buffer.bytes session.timeout.ms
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms value.deserializer
"""
# As the connector refuses them, and why.
REFUSED: Final = {
    "key.deserializer": "keys are binary; decode them with DataFrame operations, as in CAST(key AS STRING)",
    "value.deserializer": "values are binary; decode them with DataFrame operations, "
    "as in CAST(value AS STRING)",
    "auto.offset.reset": "the option 'startingOffsets' says where a new query starts; a restarted one goes "
    "on where its checkpoint says",
    "enable.auto.commit": "the checkpoint of the query says what was read; 'commitOffsets' with "
    "'kafka.group.id' shows it in a consumer group too",
    "interceptor.classes": "an interceptor could change what is read",
}
ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": 1}
READ_COMMITTED: Final = ISOLATION_LEVELS["read_committed"]
DEFAULT_TIMEOUT_MS: Final = 120_000


def check_properties(kafka: Mapping[str, str]) -> None:
    """Refuse what Kafka's consumer does not know, and what would contradict how Spark reads."""
    for name, reason in REFUSED.items():
        if name in kafka:
            raise BadOption(f"option 'kafka.{name}' is not supported: {reason}")
    plain = [name for name in kafka if not name.startswith(SECURITY_PREFIXES)]
    refuse_unknown(plain, CONSUMER_PROPERTIES.split(), prefix="kafka.")


def isolation_level(own: Mapping[str, str], kafka: Mapping[str, str]) -> int:
    given = {options["isolation.level"].strip().lower() for options in (own, kafka) if _has_level(options)}
    if len(given) > 1:
        raise BadOption("options 'isolation.level' and 'kafka.isolation.level' mean the same, and differ")
    level = given.pop() if given else "read_uncommitted"
    if level not in ISOLATION_LEVELS:
        raise BadOption(f"option 'kafka.isolation.level' is {' or '.join(ISOLATION_LEVELS)}, not '{level}'")
    return ISOLATION_LEVELS[level]


def _has_level(options: Mapping[str, str]) -> bool:
    return "isolation.level" in options


def check_crcs(kafka: Mapping[str, str]) -> bool:
    return boolean("kafka.check.crcs", kafka.get("check.crcs", "true"))


def max_fetch_bytes(kafka: Mapping[str, str]) -> int | None:
    # A fetch here is of one partition, so the smaller of the two is what the user meant.
    names = [name for name in ("max.partition.fetch.bytes", "fetch.max.bytes") if name in kafka]
    return min((number(f"kafka.{name}", kafka[name], at_least=1) for name in names), default=None)


def timeout(own: Mapping[str, str], kafka: Mapping[str, str]) -> int:
    """How long a task or the driver waits for brokers, in milliseconds."""
    for name, text in (
        ("kafkaConsumer.pollTimeoutMs", own.get("kafkaconsumer.polltimeoutms")),
        ("kafka.default.api.timeout.ms", kafka.get("default.api.timeout.ms")),
        ("kafka.request.timeout.ms", kafka.get("request.timeout.ms")),
    ):
        if text is not None:
            return number(name, text, at_least=1)
    return DEFAULT_TIMEOUT_MS
