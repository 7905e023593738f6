"""A member of a share group that speaks raw frames, since no Python client has share consumers yet."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from tests.interop.batches import headers
from tests.interop.requests import topic_id
from tests.interop.topics import eventually
from tests.interop.wire import Wire

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
GROUP = 32  # a config resource
NO_GROUP = 69

Acknowledgement = tuple[int, int, Sequence[int]]  # first offset, last offset, types


class Delivered(NamedTuple):
    """What one fetch brought of one partition."""

    error_code: int
    acknowledge_error_code: int
    acquired: list[tuple[int, int, int]]  # first offset, last offset, delivery count
    batches: list[tuple[int, int]]  # first offset and end offset

    @property
    def offsets(self) -> list[int]:
        return [number for first, last, _ in self.acquired for number in range(first, last + 1)]

    @property
    def counts(self) -> set[int]:
        return {count for _, _, count in self.acquired}


NOTHING = Delivered(0, 0, [], [])


class Member:
    """One member on a connection of its own. Where a test leaves a topic out, its only one is meant."""

    def __init__(self, bootstrap: str, group: str, *topics: str) -> None:
        self.wire = Wire(bootstrap)
        self.group = group
        self.topics = topics
        self.ids = {topic: topic_id(self.wire, topic) for topic in topics}
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.session_epoch = 0
        self.assigned: dict[str, list[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.socket.close()

    # --- membership ------------------------------------------------------------------------

    def beat(self, **values: Any) -> Any:
        """One heartbeat. Takes over epoch and assignment."""
        request = {"member_epoch": self.epoch, "subscribed_topic_names": None} | values
        if self.epoch == 0 and "subscribed_topic_names" not in values:
            request["subscribed_topic_names"] = list(self.topics)
        answer = self.wire.ask(
            "share_group_heartbeat", 1, group_id=self.group, member_id=self.member_id, **request
        )
        if answer.error_code == 0:
            self.epoch = max(answer.member_epoch, 0)
            if answer.assignment is not None:
                names = {known: topic for topic, known in self.ids.items()}
                self.assigned = {
                    names[each.topic_id]: sorted(each.partitions)
                    for each in answer.assignment.topic_partitions
                }
        return answer

    def join(self, partitions: int | None = 1) -> Self:
        """Become a member, and one that has partitions: with Kafka that takes a few heartbeats."""

        def has_them() -> bool:
            answer = self.beat()
            assert answer.error_code == 0, answer.error_message
            count = sum(map(len, self.assigned.values()))
            return count > 0 if partitions is None else count == partitions

        eventually(has_them)
        return self

    def leave(self) -> Any:
        return self.beat(member_epoch=-1, subscribed_topic_names=None)

    def end(self) -> None:
        """Close everything, as a consumer does when it is closed."""
        self.close_session()
        assert self.leave().error_code == 0
        self.wire.socket.close()

    # --- records ---------------------------------------------------------------------------

    def fetch(
        self,
        *acknowledgements: Acknowledgement,
        topic: str | None = None,
        partition: int = 0,
        max_wait: int = 500,
        max_records: int = 500,
        version: int = 2,
        **values: Any,
    ) -> Delivered:
        """Fetch, and acknowledge earlier records of the same partition."""
        response = self.ask_fetch(
            {(topic or self.topics[0], partition): acknowledgements},
            max_wait=max_wait,
            max_records=max_records,
            version=version,
            **values,
        )
        assert response.error_code == 0, response.error_message
        answers = dict(delivered(response))
        return answers.get((self.ids[topic or self.topics[0]], partition), NOTHING)

    def fetch_some(self, **values: Any) -> Delivered:
        """Fetch until there is something."""
        found = NOTHING

        def comes() -> bool:
            nonlocal found
            found = self.fetch(**values)
            return bool(found.acquired)

        eventually(comes)
        return found

    def ask_fetch(
        self,
        partitions: Mapping[tuple[str, int], Sequence[Acknowledgement]],
        *,
        max_wait: int = 500,
        max_records: int = 500,
        version: int = 2,
        session_epoch: int | None = None,
        **values: Any,
    ) -> Any:
        request: dict[str, Any] = {
            "max_wait": max_wait,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": max_records,
            "batch_size": max_records,
        }
        response = self.wire.ask(
            "share_fetch",
            version,
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch if session_epoch is None else session_epoch,
            topics=self._topics(partitions),
            **request | values,
        )
        if response.error_code == 0 and session_epoch is None:
            self.session_epoch += 1
        return response

    def acknowledge(
        self,
        *acknowledgements: Acknowledgement,
        topic: str | None = None,
        partition: int = 0,
        version: int = 2,
        session_epoch: int | None = None,
        **values: Any,
    ) -> int:
        """Acknowledge records of a partition; returns the error code of the partition."""
        response = self.wire.ask(
            "share_acknowledge",
            version,
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.session_epoch if session_epoch is None else session_epoch,
            topics=self._topics({(topic or self.topics[0], partition): acknowledgements}),
            **values,
        )
        if response.error_code:
            return int(response.error_code)
        if session_epoch is None:
            self.session_epoch += 1
        ((answer,),) = [each.partitions for each in response.responses]
        return int(answer.error_code)

    def close_session(self) -> None:
        response = self.wire.ask(
            "share_acknowledge",
            2,
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=-1,
            topics=[],
        )
        assert response.error_code == 0
        self.session_epoch = 0

    def _topics(
        self, partitions: Mapping[tuple[str, int], Sequence[Acknowledgement]]
    ) -> list[dict[str, Any]]:
        return [
            {
                "topic_id": self.ids[topic],
                "partitions": [
                    {
                        "partition_index": partition,
                        "acknowledgement_batches": [
                            {"first_offset": first, "last_offset": last, "acknowledge_types": types}
                            for first, last, types in acknowledgements
                        ],
                    }
                ],
            }
            for (topic, partition), acknowledgements in partitions.items()
        ]


def delivered(response: Any) -> Iterator[tuple[tuple[uuid.UUID, int], Delivered]]:
    for topic in response.responses:
        for one in topic.partitions:
            acquired = [
                (each.first_offset, each.last_offset, each.delivery_count) for each in one.acquired_records
            ]
            yield (
                (topic.topic_id, one.partition_index),
                Delivered(
                    one.error_code,
                    one.acknowledge_error_code,
                    acquired,
                    [(each.base_offset, each.next_offset) for each in headers(one.records or b"")],
                ),
            )


def find_coordinator(bootstrap: str, group: str) -> None:
    """Return once the group has a coordinator that answers. Kafka makes the topic on this occasion."""
    with Wire(bootstrap) as wire:

        def is_found() -> bool:
            (found,) = wire.ask("find_coordinator", 4, key_type=0, coordinator_keys=[group]).coordinators
            if found.error_code:
                return False
            answer = wire.ask("share_group_heartbeat", 1, group_id=group, member_id="nobody", member_epoch=9)
            return bool(answer.error_code == NO_GROUP)

        eventually(is_found)


def configure_group(bootstrap: str, group: str, **configs: object) -> None:
    with Wire(bootstrap) as wire:
        response = wire.ask(
            "incremental_alter_configs",
            1,
            resources=[
                {
                    "resource_type": GROUP,
                    "resource_name": group,
                    "configs": [
                        {"name": name.replace("_", "."), "config_operation": 0, "value": str(value)}
                        for name, value in configs.items()
                    ],
                }
            ],
        )
        for answer in response.responses:
            assert answer.error_code == 0, answer.error_message
