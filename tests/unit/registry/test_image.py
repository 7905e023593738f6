"""The topic's records: what they look like, and what is made of those that others wrote."""

from __future__ import annotations

import json

import pytest

from ottla.registry import records
from ottla.registry.image import Image
from ottla.registry.levels import Level, Mode
from ottla.registry.schemas import Reference, Registered, Schema, SchemaType

STRING = Schema(SchemaType.AVRO, '"string"')


def test_records_have_the_members_and_the_order_that_other_registries_write() -> None:
    assert records.registered(Registered("a-value", 2, 7, STRING)) == (
        b'{"keytype":"SCHEMA","subject":"a-value","version":2,"magic":1}',
        b'{"subject":"a-value","version":2,"id":7,"schema":"\\"string\\"","deleted":false}',
    )
    user = Schema(SchemaType.JSON, "{}", (Reference("n", "s", 3),))
    assert json.loads(records.registered(Registered("a", 1, 1, user, deleted=True)).value or b"") == {
        "subject": "a",
        "version": 1,
        "id": 1,
        "schemaType": "JSON",
        "references": [{"name": "n", "subject": "s", "version": 3}],
        "schema": "{}",
        "deleted": True,
    }
    assert records.removed("a", 1) == (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', None)
    assert records.level_set("a", Level.FULL) == (
        b'{"keytype":"CONFIG","subject":"a","magic":0}',
        b'{"subject":"a","compatibilityLevel":"FULL"}',
    )
    assert records.level_set(None, None) == (b'{"keytype":"CONFIG","magic":0}', None)
    assert records.mode_set(None, Mode.READONLY) == (b'{"keytype":"MODE","magic":0}', b'{"mode":"READONLY"}')
    assert records.subject_deleted("a", 4) == (
        b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}',
        b'{"subject":"a","version":4}',
    )


def test_records_of_another_registry_are_understood() -> None:
    image = Image()
    for key, value in (
        ('{"keytype":"NOOP","magic":0}', None),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FORWARD"}'),
        (
            '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
            '{"subject":"a","version":1,"id":9,"md5":"x","schema":"\\"string\\"","deleted":false,"ts":5}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"a","version":2,"magic":1}',
            '{"subject":"a","version":2,"id":10,"schemaType":"PROTOBUF","schema":"x","deleted":false}',
        ),
        ('{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', '{"subject":"a","version":1}'),
    ):
        image.apply(key.encode(), value and value.encode())
    assert image.level_of("anything") is Level.FORWARD
    assert [(each.version, each.deleted) for each in image.versions("a", deleted=True)] == [
        (1, True),
        (2, False),
    ]
    assert image.schemas[10].type is SchemaType.PROTOBUF
    assert image.last_id == 10


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b'{"keytype":"SCHEMA"}',
        b'{"keytype":"SCHEMA","subject":[1],"version":1}',
        b'{"keytype":"CONFIG","subject":"a"}',
        b'{"keytype":"MODE","subject":"a"}',
        b'{"keytype":"SOMETHING","subject":"a"}',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("value", [None, b"", b"7", b"[]", b'{"version":"x"}', b"\xff", b"{" * 100_000])
def test_what_cannot_be_read_says_nothing(key: bytes | None, value: bytes | None) -> None:
    image = Image()
    image.apply(*records.registered(Registered("a", 1, 1, STRING)))
    image.apply(*records.level_set("b", Level.FULL))
    image.apply(key, value)
    assert [each.subject for each in image] == ["a"]
    assert image.levels == {"b": Level.FULL}


def test_versions_are_in_order_whatever_order_they_are_read_in() -> None:
    image = Image()
    for number in (3, 1, 2):
        image.apply(
            *records.registered(Registered("a", number, number, Schema(SchemaType.AVRO, str(number))))
        )
    assert [each.version for each in image.versions("a")] == [1, 2, 3]
