"""Judges of groups: by which protocol their members came together, what each was given, what they kept."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from tools.interop.judges.evidence import Judge, Report, asked, committed, expect, group_type, stored
from tools.interop.stage import PARTITIONS, RECORDS, Stage
from tools.interop.traffic import Said

ACCEPT, RELEASE = 1, 2
PROTOCOLS = {
    "classic": ("join_group", "sync_group", "offset_commit"),
    "consumer": ("consumer_group_heartbeat", "offset_commit"),
}


def group_of(kind: str) -> Judge:
    """Two members with two partitions each; at least once everything, and all of it committed."""

    def judge(stage: Stage, report: Report) -> list[str]:
        problems = asked(stage, "fetch", *PROTOCOLS[kind])
        # Both the requests and the broker, so that a client cannot pass by using the other protocol.
        problems += expect("type of the group", group_type(stage), kind)
        shares = sorted(sorted(partitions) for partitions in report["assigned"])
        problems += expect("partitions of the members", [len(share) for share in shares], [2, 2])
        problems += expect("partitions of all", sorted(chain.from_iterable(shares)), list(range(PARTITIONS)))
        if shares not in assignments(stage):
            problems.append(f"members say that they had {shares}, which nobody gave them")
        values = {record["v"] for record in report["records"]}
        problems += expect("values", values, {f"value-{n}" for n in range(RECORDS)})
        wanted = dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)
        problems += expect("offsets at the broker", committed(stage), wanted)
        found = {int(partition): offset for partition, offset in report["committed"].items()}
        return problems + expect("committed offsets that were read", found, wanted)

    return judge


def assignments(stage: Stage) -> Iterator[list[list[int]]]:
    """What all members of the group had at every moment, by the answers that gave it to them."""
    owned: dict[str, list[int]] = {}
    for said in stage.traffic.of("sync_group", "consumer_group_heartbeat"):
        if said.request.group_id == stage.name:
            given = partitions_given(said, stage.name)
            if given is not None:
                owned[said.request.member_id or said.response.member_id] = given
                yield sorted(owned.values())


def partitions_given(said: Said, topic: str) -> list[int] | None:
    """Nothing when the answer leaves the assignment as it was."""
    if said.response.error_code != 0:
        return None
    if said.api == "sync_group":
        return assigned_partitions(said.response.assignment, topic)
    if said.response.assignment is None:
        return None
    return sorted(
        number for topic_id in said.response.assignment.topic_partitions for number in topic_id.partitions
    )


def assigned_partitions(assignment: bytes, topic: str) -> list[int]:
    """The partitions of the topic in an assignment of the classic consumer protocol."""
    if not assignment:
        return []
    found: list[int] = []
    _version, topics = struct.unpack_from(">hi", assignment)
    position = 6
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", assignment, position)
        name = assignment[position + 2 : position + 2 + size].decode()
        position += 2 + size
        (count,) = struct.unpack_from(">i", assignment, position)
        numbers = struct.unpack_from(f">{count}i", assignment, position + 4)
        position += 4 + 4 * count
        found += numbers if name == topic else ()
    return sorted(found)


def saw_shared(stage: Stage, report: Report) -> list[str]:
    """Two members that accept everything between them, after one release of one record."""
    problems = asked(stage, "share_group_heartbeat", "share_fetch")
    members = {said.request.member_id for said in stage.traffic.of("share_group_heartbeat")}
    problems += expect("members", len(members), 2)
    acknowledged = Counter(acknowledgements(stage))
    places = {(record.partition, record.offset) for record in stored(stage)}
    accepted = {place for place, kind in acknowledged if kind == ACCEPT}
    problems += expect("records accepted on the wire", accepted, places)
    released = sum(count for (_, kind), count in acknowledged.items() if kind == RELEASE)
    problems += expect("records released on the wire", released, 1)
    counts = [
        records.delivery_count
        for said in stage.traffic.of("share_fetch")
        for topic in said.response.responses
        for partition in topic.partitions
        for records in partition.acquired_records
    ]
    problems += expect("most deliveries on the wire", max(counts, default=0), 2)
    values = sorted(record["v"] for record in report["records"])
    problems += expect("accepted records", values, sorted(f"value-{n}" for n in range(RECORDS)))
    return problems + expect("deliveries of a released record", report["deliveries"], 2)


def acknowledgements(stage: Stage) -> Iterator[tuple[tuple[int, int], int]]:
    """Partition and offset, and the kind of acknowledgement."""
    for said in stage.traffic.of("share_fetch", "share_acknowledge"):
        for topic in said.request.topics:
            for partition in topic.partitions:
                for batch in partition.acknowledgement_batches:
                    offsets = range(batch.first_offset, batch.last_offset + 1)
                    kinds = list(batch.acknowledge_types)
                    kinds = kinds * len(offsets) if len(kinds) == 1 else kinds
                    for offset, kind in zip(offsets, kinds, strict=True):
                        yield (partition.partition_index, offset), int(kind)


def saw_static(stage: Stage, report: Report) -> list[str]:
    """A member that comes back under its instance id finds its partitions, and nobody else was disturbed."""
    before, other, after = report["before"], report["other"], report["after"]
    problems = asked(stage, "join_group", "sync_group")
    problems += expect("partitions of both", sorted(before + other), list(range(PARTITIONS)))
    problems += expect("partitions after coming back", sorted(after), sorted(before))
    problems += expect("rebalances of the other member", report["rebalances"], 0)
    return problems + came_back(stage) + ([] if in_turn(stage, report) else ["nobody gave them these"])


def in_turn(stage: Stage, report: Report) -> bool:
    """Whether the members of both instance ids were given what the program says."""
    given: dict[str, list[list[int]]] = {"a": [], "b": []}
    for said in stage.traffic.of("sync_group"):
        instance = said.request.group_instance_id or ""
        found = partitions_given(said, stage.name)
        if found is not None and instance.startswith(f"{stage.name}-"):
            given[instance[-1]].append(found)
    first, second = given["a"], given["b"]
    wanted = sorted(report["before"])
    return first[-2:] == [wanted, wanted] and sorted(report["other"]) in second[-1:]


def came_back(stage: Stage) -> list[str]:
    """The group's generation does not change when `a` comes back, so it is joined twice by `a`."""
    joins = [
        (said.request.group_instance_id, said.response.generation_id, said.exchange.connection)
        for said in stage.traffic.of("join_group")
        if said.request.group_id == stage.name and said.response.error_code == 0
    ]
    instances = {instance for instance, _, _ in joins}
    problems = expect("instance ids that joined", instances, {f"{stage.name}-a", f"{stage.name}-b"})
    last = max((generation for _, generation, _ in joins), default=0)
    times = len({link for name, found, link in joins if name == f"{stage.name}-a" and found == last})
    return problems + expect(f"connections by which `a` joined generation {last}", times, 2)
