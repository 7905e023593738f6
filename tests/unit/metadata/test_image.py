from __future__ import annotations

from typing import Any

import pytest

from ottla.core.ids import Uuid
from ottla.metadata import framing
from ottla.metadata.image import Image
from ottla.metadata.snapshot import records
from ottla.protocol.stored import metadata as stored
from ottla.protocol.wire import MalformedFrame

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def fold(*given: Any, into: Image | None = None) -> Image:
    image = Image() if into is None else into
    for record in given:
        image.apply(record, image.offset + 1)
    return image


def topic(name: str = "orders", topic_id: Uuid = ONE, partitions: int = 1) -> list[Any]:
    made: list[Any] = [stored.TopicRecord(name=name, topic_id=topic_id)]
    made += [
        stored.PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        )
        for number in range(partitions)
    ]
    return made


def test_topics_are_found_by_name_and_by_id() -> None:
    image = fold(*topic(partitions=2))
    assert image.topics["orders"] is image.topic_by_id[ONE] is image.topic_ids[ONE]
    assert image.partition(ONE, 1) == image.topics["orders"].partitions[1]
    assert image.partition(TWO, 0) is None


def test_a_transaction_counts_at_its_end_or_not_at_all() -> None:
    image = fold(stored.BeginTransactionRecord(name="x"), *topic())
    assert image.in_transaction
    assert image.topics == {}
    assert not image.take_delta()

    fold(stored.EndTransactionRecord(), into=image)
    assert set(image.topics) == {"orders"}
    assert image.offset == 3
    assert image.take_delta().topics == {"orders": {0}}

    fold(
        stored.BeginTransactionRecord(),
        *topic("other", TWO),
        stored.AbortTransactionRecord(reason="no"),
        into=image,
    )
    assert set(image.topics) == {"orders"}


def test_a_delta_says_what_changed_since_the_last_one() -> None:
    image = fold(*topic())
    first = image.take_delta()
    assert (first.topics, image.version) == ({"orders": {0}}, 1)

    fold(
        stored.PartitionChangeRecord(partition_id=0, topic_id=ONE, isr=[]),
        stored.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="b"),
        stored.FeatureLevelRecord(name="group.version", feature_level=1),
        into=image,
    )
    second = image.take_delta()
    assert (second.topics, second.configs, second.features) == (
        {"orders": {0}},
        {(2, "orders")},
        {"group.version"},
    )
    fold(stored.NoOpRecord(), into=image)
    assert not image.take_delta()
    assert image.version == 2


def test_a_topic_that_went_is_told_by_its_id_even_if_its_name_is_back() -> None:
    image = fold(*topic())
    image.take_delta()
    fold(stored.RemoveTopicRecord(topic_id=ONE), *topic("orders", TWO, partitions=2), into=image)
    delta = image.take_delta()
    assert delta.deleted_topics == {ONE: "orders"}
    assert delta.topics == {"orders": {0, 1}}
    assert image.topics["orders"].id == TWO


def test_kraft_version_among_the_features_is_passed_over() -> None:
    assert fold(stored.FeatureLevelRecord(name="kraft.version", feature_level=1)).features == {}


def test_a_feature_at_level_zero_is_off() -> None:
    on = stored.FeatureLevelRecord(name="group.version", feature_level=1)
    off = stored.FeatureLevelRecord(name="group.version", feature_level=0)
    assert fold(on, off).features == {}


@pytest.mark.parametrize(
    "bad",
    [
        stored.RemoveTopicRecord(topic_id=ONE),
        stored.PartitionRecord(partition_id=0, topic_id=ONE),
        stored.PartitionChangeRecord(partition_id=0, topic_id=ONE),
        stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=0),
        stored.UnregisterBrokerRecord(broker_id=1, broker_epoch=0),
        stored.EndTransactionRecord(),
        stored.ClearElrRecord(topic_name="orders"),
    ],
)
def test_a_record_that_cannot_follow_stops_the_fold(bad: Any) -> None:
    with pytest.raises(AssertionError, match="metadata log"):
        fold(bad)


def test_a_copy_goes_its_own_way() -> None:
    image = fold(*topic(), stored.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="b"))
    twin = image.copy()
    assert twin == image
    fold(
        stored.PartitionChangeRecord(partition_id=0, topic_id=ONE, isr=[]),
        stored.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="c"),
        into=twin,
    )
    assert twin != image
    assert image.topics["orders"].partitions[0].isr == (1,)
    assert image.configs == {(2, "orders"): {"a": "b"}}


EVERYTHING = [
    stored.FeatureLevelRecord(name="metadata.version", feature_level=30),
    stored.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
    stored.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=ONE,
        broker_epoch=2,
        end_points=[stored.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)],
        features=[
            stored.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)
        ],
        rack=None,
        log_dirs=[TWO],
    ),
    stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=-1),
    stored.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, cordoned_log_dirs=[]),
    stored.RegisterControllerRecord(
        controller_id=1,
        incarnation_id=TWO,
        end_points=[stored.ControllerEndpoint(name="CONTROLLER", host="h", port=9093)],
    ),
    *topic(partitions=3),
    stored.PartitionChangeRecord(
        partition_id=1, topic_id=ONE, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
    ),
    stored.ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
    stored.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
    stored.ClientQuotaRecord(
        entity=[
            stored.EntityData(entity_type="user", entity_name="alice"),
            stored.EntityData(entity_type="client-id", entity_name=None),
        ],
        key="producer_byte_rate",
        value=1024.5,
    ),
    stored.ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=1000),
    stored.AccessControlEntryRecord(
        id=ONE,
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
    ),
    stored.UserScramCredentialRecord(name="bob", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v"),
    stored.DelegationTokenRecord(owner="User:a", requester="User:a", token_id="t"),
]


def test_a_snapshot_of_everything_folds_into_the_same_image() -> None:
    image = fold(*EVERYTHING)
    again = fold(*(framing.decode(framing.encode(record, 30)) for record in records(image)))
    assert again == image


def test_a_snapshot_comes_in_the_order_of_kafka() -> None:
    kinds = [type(record).__name__ for record in records(fold(*EVERYTHING))]
    assert kinds == [
        "FeatureLevelRecord",
        "FeatureLevelRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "TopicRecord",
        "PartitionRecord",
        "PartitionRecord",
        "PartitionRecord",
        "ConfigRecord",
        "ConfigRecord",
        "ClientQuotaRecord",
        "ProducerIdsRecord",
        "AccessControlEntryRecord",
        "UserScramCredentialRecord",
        "DelegationTokenRecord",
    ]


def test_what_is_removed_is_gone_from_the_snapshot_too() -> None:
    image = fold(
        *EVERYTHING,
        stored.RemoveAccessControlEntryRecord(id=ONE),
        stored.RemoveUserScramCredentialRecord(name="bob", mechanism=1),
        stored.RemoveDelegationTokenRecord(token_id="t"),
        stored.ClientQuotaRecord(
            entity=[
                stored.EntityData(entity_type="client-id", entity_name=None),
                stored.EntityData(entity_type="user", entity_name="alice"),
            ],
            key="producer_byte_rate",
            remove=True,
        ),
        stored.RemoveTopicRecord(topic_id=ONE),
        stored.UnregisterBrokerRecord(broker_id=1, broker_epoch=2),
    )
    assert (image.acls, image.scram, image.tokens, image.quotas, image.topics, image.brokers) == ({},) * 6
    assert (2, "orders") not in image.configs


# --- framing ---------------------------------------------------------------------------------


def test_a_record_is_framed_by_its_frame_version_type_and_version() -> None:
    record = stored.FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert framing.encode(record, 30) == b"\x01\x0c\x00" + b"\x11metadata.version" + b"\x00\x1e" + b"\x00"
    assert framing.decode(framing.encode(record, 30)) == record


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        (stored.RegisterBrokerRecord(), 7, 1),
        (stored.RegisterBrokerRecord(), 8, 2),
        (stored.RegisterBrokerRecord(), 17, 3),
        (stored.RegisterBrokerRecord(), 30, 4),
        (stored.PartitionRecord(), 16, 0),
        (stored.PartitionRecord(), 17, 1),
        (stored.PartitionRecord(), 23, 2),
        (stored.PartitionChangeRecord(), 22, 1),
        (stored.PartitionChangeRecord(), 30, 2),
        (stored.BrokerRegistrationChangeRecord(fenced=-1), 30, 0),
        (stored.BrokerRegistrationChangeRecord(in_controlled_shutdown=1), 30, 1),
        (stored.BrokerRegistrationChangeRecord(log_dirs=[ONE]), 30, 2),
        (stored.BrokerRegistrationChangeRecord(cordoned_log_dirs=[]), 30, 3),
        (stored.TopicRecord(), 30, 0),
    ],
)
def test_a_record_is_written_in_the_version_its_cluster_can_read(
    record: Any, level: int, version: int
) -> None:
    assert framing.encode(record, level)[2] == version


@pytest.mark.parametrize(
    "noise",
    [b"", b"\x01", b"\x01\x02", b"\x02\x02\x00", b"\x01\x7f\x00", b"\x01\x02\x09", b"\x01\x02\x00\x05a"],
)
def test_what_is_not_a_metadata_record_is_refused(noise: bytes) -> None:
    with pytest.raises(MalformedFrame):
        framing.decode(noise)
