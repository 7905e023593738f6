from __future__ import annotations

from typing import Any

from ottla.core.ids import Uuid
from ottla.metadata.comparison import difference
from ottla.metadata.image import Image
from ottla.protocol.stored import metadata as stored

ONE, TWO, THREE = Uuid(b"1" * 16), Uuid(b"2" * 16), Uuid(b"3" * 16)


def fold(image: Image, *records: Any) -> Image:
    for record in records:
        image.apply(record, image.offset + 1)
    return image


def topic(name: str, topic_id: Uuid, partitions: int = 2) -> list[Any]:
    made: list[Any] = [stored.TopicRecord(name=name, topic_id=topic_id)]
    made += [
        stored.PartitionRecord(partition_id=number, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
        for number in range(partitions)
    ]
    return made


def start() -> Image:
    image = fold(Image(), *topic("orders", ONE), *topic("payments", TWO))
    fold(image, stored.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="1"))
    image.take_delta()
    return image


def test_images_that_agree_differ_in_nothing() -> None:
    assert not difference(start(), start())


def test_a_difference_is_what_the_records_would_have_told() -> None:
    old, new = start(), start()
    fold(
        new,
        stored.PartitionChangeRecord(topic_id=ONE, partition_id=1, leader=2),
        stored.RemoveTopicRecord(topic_id=TWO),
        *topic("payments", THREE, partitions=1),
        stored.ConfigRecord(resource_type=2, resource_name="orders", name="a", value=None),
        stored.FeatureLevelRecord(name="metadata.version", feature_level=30),
        stored.UserScramCredentialRecord(name="ann", mechanism=1),
        stored.ProducerIdsRecord(next_producer_id=1000),
    )
    delta = difference(old, new)
    assert delta == new.take_delta()
    assert delta.topics == {"orders": {1}, "payments": {0}}
    assert delta.deleted_topics == {TWO: "payments"}


def test_an_image_that_is_taken_over_stays_the_same_object_and_tells_what_changed() -> None:
    image, new = start(), start()
    fold(new, *topic("returns", THREE))
    new.epoch = 7
    image.take_over(new, difference(image, new))
    assert image == new
    assert (image.offset, image.epoch) == (new.offset, 7)
    assert image.topic_by_id[THREE] is image.topics["returns"]
    assert image.take_delta().topics == {"returns": {0, 1}}
    assert not image.take_delta()
