"""Our bytes, read and written again by two codecs that others made.

kio has a class for each version, generated from Kafka's definitions; kafka-python interprets the definitions,
and is the one that knows versions from before Kafka 4. Neither shares anything with our declarations.
"""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
import pytest
from kio.index import load_payload_module
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from ottla.protocol.apis import Api, all_apis, api
from ottla.protocol.codec import decode, encode
from tests.unit.protocol.message_values import filled, versions_of

SEEDS = range(2)


@pytest.mark.parametrize("key", sorted(api_key_map), ids=api_key_map.get)
def test_kio_reads_and_writes_the_same_bytes(key: int) -> None:
    found = api(key)
    known = schema_name_map[api_key_map[key]]
    assert known.keys() & set(versions_of(found.request))
    for message, kind in ((found.request, EntityType.request), (found.response, EntityType.response)):
        for version in known.keys() & set(versions_of(message)):
            theirs = getattr(load_payload_module(key, version, kind), message.__name__)
            for seed in SEEDS:
                ours = filled(message, version, seed)
                encoded = encode(ours, version)
                read, size = entity_reader(theirs)(encoded, 0)
                assert size == len(encoded)
                assert_same(ours, read)
                out = io.BytesIO()
                entity_writer(theirs)(out, read)
                assert out.getvalue() == encoded, (message.__name__, version)
                assert decode(message, version, out.getvalue()) == ours


def assert_same(ours: Any, theirs: Any) -> None:
    """What kio keeps under the same name as we do, and as a plain value, is the same value."""
    for name in theirs.__dataclass_fields__:
        if not hasattr(ours, name):
            continue  # kio calls times and durations otherwise
        mine, other = getattr(ours, name), getattr(theirs, name)
        if isinstance(mine, list):
            assert len(mine) == len(other)
            for one, another in zip(mine, other, strict=True):
                if hasattr(one, "__declared__"):
                    assert_same(one, another)
        elif hasattr(mine, "__declared__"):
            assert_same(mine, other)
        elif isinstance(other, str | int | bytes | float | None):
            assert mine == other, name


def _kafka_python_classes() -> dict[str, Any]:
    packages: tuple[ModuleType, ...] = (
        kafka.protocol.admin,
        kafka.protocol.consumer,
        kafka.protocol.metadata,
        kafka.protocol.producer,
        kafka.protocol.sasl,
    )
    return {name: value for package in packages for name, value in vars(package).items()}


KAFKA_PYTHON = _kafka_python_classes()


SHARED_WITH_KAFKA_PYTHON = [found for found in all_apis() if found.request.__name__ in KAFKA_PYTHON]


def test_kafka_python_knows_most_apis_that_clients_use() -> None:
    assert len(SHARED_WITH_KAFKA_PYTHON) > 45


@pytest.mark.parametrize("found", SHARED_WITH_KAFKA_PYTHON, ids=lambda found: found.name)
def test_kafka_python_reads_and_writes_the_same_bytes(found: Api) -> None:
    for message in (found.request, found.response):
        theirs = KAFKA_PYTHON[message.__name__]
        if theirs.__name__ == "ApiVersionsResponse":
            continue  # kafka-python reads it as version 0 when it cannot know better
        for version in versions_of(message):
            if version > theirs.max_version:
                continue
            for seed in SEEDS:
                encoded = encode(filled(message, version, seed), version)
                read = theirs.decode(encoded, version=version)
                read._header = None  # what it reads without a header it cannot write otherwise
                assert bytes(read.encode(version=version)) == encoded, (message.__name__, version)
