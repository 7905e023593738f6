"""What is in a topic, read with another client than ours: for counting what a sink has written."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition


def records(bootstrap: str, topic: str, *, committed: bool = True) -> list[Message]:
    """Every record, as a reader of committed records sees it or as it is stored, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not used",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: dict[int, list[Message]] = {number: [] for number in partitions}
        unread = set(partitions)
        while unread:
            message = consumer.poll(30)
            assert message is not None, f"{topic}: no end of partitions {unread} in sight"
            error = message.error()
            if error is None:
                found[message.partition()].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    return [message for number in sorted(found) for message in found[number]]


def values(bootstrap: str, topic: str, *, committed: bool = True) -> list[str]:
    return [each.value().decode() for each in records(bootstrap, topic, committed=committed)]
