"""Members of a group by the classic protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ottla.client import admin, group_admin
from ottla.client.cluster import Cluster
from ottla.client.group import GroupMember, divide_by_range, read_assignment, write_assignment
from ottla.core.types import TopicPartition
from ottla.protocol.errors import GroupIdNotFound, KafkaError, UnknownMemberId

Names = Callable[[str], str]


def test_range_gives_consecutive_partitions_of_each_topic() -> None:
    divided = divide_by_range({"b": ["t", "u"], "a": ["t"]}, {"t": 5, "u": 2, "nobody": 3})

    assert [each.partition for each in divided["a"]] == [0, 1, 2]
    assert divided["b"] == [
        TopicPartition("t", 3),
        TopicPartition("t", 4),
        TopicPartition("u", 0),
        TopicPartition("u", 1),
    ]


def test_more_members_than_partitions_leaves_some_without() -> None:
    divided = divide_by_range({"a": ["t"], "b": ["t"]}, {"t": 1})

    assert divided == {"a": [TopicPartition("t", 0)], "b": []}


def test_an_assignment_reads_as_it_was_written() -> None:
    partitions = [TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("u", 1)]

    assert read_assignment(write_assignment(partitions)) == partitions
    assert read_assignment(b"") == []


def test_a_member_commits_and_the_next_finds_it(bootstrap: str, unique: Names) -> None:
    topic, group = unique("topic"), unique("group")
    partition = TopicPartition(topic, 0)

    async def client() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, topic, partitions=1)
            with pytest.raises(GroupIdNotFound):
                await group_admin.describe_group(cluster, group)
            async with GroupMember(cluster, group, [topic]) as member:
                assert await member.join() == [partition]
                await member.commit({partition: 0})
                described = await group_admin.describe_group(cluster, group)
                assert (described.type, described.state) == ("classic", "Stable")
                assert [each.partitions for each in described.members] == [[partition]]
                with pytest.raises(KafkaError):
                    await group_admin.delete_group(cluster, group)
                with pytest.raises(UnknownMemberId):
                    await group_admin.reset_offsets(cluster, group, {partition: 0})
            assert await group_admin.committed_offsets(cluster, group) == {partition: 0}
            assert (await group_admin.describe_group(cluster, group)).state == "Empty"
            assert group in [each.group_id for each in await group_admin.list_groups(cluster)]
            await group_admin.delete_group(cluster, group)
            assert await group_admin.committed_offsets(cluster, group) == {}

    asyncio.run(client())


def test_members_share_and_take_over(bootstrap: str, unique: Names) -> None:
    topic, group = unique("topic"), unique("group")
    everything = [TopicPartition(topic, number) for number in range(4)]

    async def joined(member: GroupMember) -> list[TopicPartition]:
        await member.rebalancing.wait()
        return await member.join()

    async def client() -> None:
        # Two clusters, as two processes would have: a member that joins keeps its connection waiting.
        async with Cluster(bootstrap) as one, Cluster(bootstrap) as two:
            await admin.create_topic(one, topic, partitions=4)
            async with GroupMember(one, group, [topic]) as first:
                assert sorted(await first.join()) == everything
                async with GroupMember(two, group, [topic]) as second:
                    theirs, ours = await asyncio.gather(second.join(), joined(first))
                    assert len(theirs) == len(ours) == 2
                    assert sorted(theirs + ours) == everything
                # The second has left, which the first hears with its next heartbeat.
                assert sorted(await joined(first)) == everything

    asyncio.run(client())
