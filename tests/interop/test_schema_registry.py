"""The schema registry as Confluent's client and serializers use it, on the broker's own address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.interop.topics import Names, NewTopic

ORDER = {"id": "o-1", "amount": 7}
AVRO = """{
  "type": "record", "name": "Order", "namespace": "shop",
  "fields": [{"name": "id", "type": "string"}, {"name": "amount", "type": "long"}]
}"""
AVRO_NEXT = AVRO.replace('"long"}', '"long"}, {"name": "note", "type": ["null", "string"], "default": null}')
AVRO_WRONG = AVRO.replace('"long"}', '"long"}, {"name": "note", "type": "string"}')
JSON = """{
  "$schema": "http://json-schema.org/draft-07/schema#", "title": "Order", "type": "object",
  "properties": {"id": {"type": "string"}, "amount": {"type": "integer"}}, "required": ["id"]
}"""


@pytest.fixture
def registry(bootstrap: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": f"http://{bootstrap}"}) as client:
        yield client


def through_a_topic(bootstrap: str, topic: str, value: bytes) -> bytes:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value=value)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{topic}-readers", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        message = consumer.poll(30)
        assert message is not None and not message.error()
        found: bytes = message.value()
        return found
    finally:
        consumer.close()


def test_avro_records_are_written_and_read(
    bootstrap: str, registry: SchemaRegistryClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    where = SerializationContext(topic, MessageField.VALUE)
    value = through_a_topic(bootstrap, topic, AvroSerializer(registry, AVRO)(ORDER, where))
    assert AvroDeserializer(registry)(value, where) == ORDER
    newer = AvroSerializer(registry, AVRO_NEXT)({**ORDER, "note": "soon"}, where)
    assert AvroDeserializer(registry, AVRO)(newer, where) == ORDER, "the old schema reads the new record"
    assert AvroDeserializer(registry, AVRO_NEXT)(value, where) == {**ORDER, "note": None}
    assert registry.get_versions(f"{topic}-value") == [1, 2]


def test_json_records_are_written_and_read(
    bootstrap: str, registry: SchemaRegistryClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    where = SerializationContext(topic, MessageField.VALUE)
    value = through_a_topic(bootstrap, topic, JSONSerializer(JSON, registry)(ORDER, where))
    assert JSONDeserializer(None, schema_registry_client=registry)(value, where) == ORDER


def order_class() -> Any:
    """A message class, which protoc would generate."""
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    field = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    message.field.add(name="amount", number=2, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_records_are_written_and_read(
    bootstrap: str, registry: SchemaRegistryClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    where = SerializationContext(topic, MessageField.VALUE)
    order = order_class()
    settings = {"use.deprecated.format": False}
    written = ProtobufSerializer(order, registry, settings)(order(**ORDER), where)
    found = ProtobufDeserializer(order, settings, registry)(through_a_topic(bootstrap, topic, written), where)
    assert (found.id, found.amount) == ("o-1", 7)
    assert "message Order" in registry.get_latest_version(f"{topic}-value").schema.schema_str


def test_a_schema_that_would_break_readers_is_refused(registry: SchemaRegistryClient, unique: Names) -> None:
    subject = unique("subject")
    first = registry.register_schema(subject, Schema(AVRO, "AVRO"))
    assert registry.register_schema(subject, Schema(AVRO, "AVRO")) == first
    assert registry.test_compatibility(subject, Schema(AVRO_NEXT, "AVRO"))
    assert not registry.test_compatibility(subject, Schema(AVRO_WRONG, "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        registry.register_schema(subject, Schema(AVRO_WRONG, "AVRO"))
    assert caught.value.http_status_code == 409
    assert "note" in caught.value.error_message
    with pytest.raises(SchemaRegistryError) as caught:
        registry.register_schema(subject, Schema('{"type": "rekord"}', "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (422, 42201)


def test_a_registry_is_administered(registry: SchemaRegistryClient, unique: Names) -> None:
    subject = unique("subject")
    registry.register_schema(subject, Schema(AVRO, "AVRO"))
    assert subject in registry.get_subjects()
    assert registry.get_compatibility() == "BACKWARD"
    registry.set_compatibility(subject, "NONE")
    assert registry.get_compatibility(subject) == "NONE"
    registry.register_schema(subject, Schema(AVRO_WRONG, "AVRO"))
    latest = registry.get_latest_version(subject)
    assert (latest.subject, latest.version) == (subject, 2)
    assert registry.lookup_schema(subject, Schema(AVRO_WRONG, "AVRO")).schema_id == latest.schema_id
    assert registry.delete_version(subject, 2) == 2
    assert registry.get_versions(subject) == [1]
    assert registry.delete_subject(subject) == [1]
    assert registry.delete_subject(subject, permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as caught:
        registry.get_versions(subject)
    assert caught.value.error_code == 40401


def test_a_schema_refers_to_another(registry: SchemaRegistryClient, unique: Names) -> None:
    used, user = unique("subject"), unique("subject")
    registry.register_schema(used, Schema(AVRO, "AVRO"))
    text = '{"type": "record", "name": "Cart", "fields": [{"name": "order", "type": "shop.Order"}]}'
    cart = Schema(text, "AVRO", [SchemaReference("shop.Order", used, 1)])
    schema_id = registry.register_schema(user, cart)
    found = registry.get_schema(schema_id)
    assert [(each.name, each.subject, each.version) for each in found.references or []] == [
        ("shop.Order", used, 1)
    ]
    where = SerializationContext("carts", MessageField.VALUE)
    settings = {
        "auto.register.schemas": False,
        "use.latest.version": True,
        "subject.name.strategy": lambda *_: user,
    }
    value = AvroSerializer(registry, cart, conf=settings)({"order": ORDER}, where)
    assert value[1:5] == schema_id.to_bytes(4, "big")


def test_a_transaction_that_is_open_hides_no_schemas(
    bootstrap: str, registry: SchemaRegistryClient, unique: Names
) -> None:
    subjects = [f"{unique('open')}-value" for _ in range(3)]
    # Three of different names: those that are equal would have one id.
    schemas = [Schema(AVRO.replace("Order", f"O{uuid4().hex}"), "AVRO") for _ in subjects]
    ids = [registry.register_schema(subjects[0], schemas[0])]
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": subjects[0]})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("_schemas", key=b"anything", value=b"at all")
    assert producer.flush(30) == 0
    try:
        ids += [registry.register_schema(*each) for each in zip(subjects[1:], schemas[1:], strict=True)]
    finally:
        producer.abort_transaction()
    assert len(set(ids)) == 3
    assert [registry.get_latest_version(subject).schema_id for subject in subjects] == ids
