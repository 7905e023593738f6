"""What the replicas of a partition have on disk: the same bytes, whoever wrote them first (I3, I17)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from ottla.testing import cluster_state
from ottla.testing.cluster import TestCluster

HEADER = struct.Struct(">qi")
LAST_OFFSET_DELTA = struct.Struct(">i")
METADATA = "__cluster_metadata-0"


def batches(directory: Path) -> dict[int, bytes]:
    """Every whole batch in the segments of a partition, by its first offset."""
    found: dict[int, bytes] = {}
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        position = 0
        while position + HEADER.size <= len(data):
            base, length = HEADER.unpack_from(data, position)
            end = position + HEADER.size + length
            if length <= 0 or end > len(data):
                break
            found[base] = data[position:end]
            position = end
    return found


def last_offset(batch: bytes) -> int:
    base, _ = HEADER.unpack_from(batch)
    (delta,) = LAST_OFFSET_DELTA.unpack_from(batch, 23)
    return int(base) + int(delta)


def differences(name: str, copies: dict[int, dict[int, bytes]]) -> Iterator[str]:
    """Where replicas of a partition do not have the same; `copies` is what each node has."""
    starts = {node: min(found, default=0) for node, found in copies.items()}
    ends = {
        node: max((last_offset(batch) for batch in found.values()), default=-1) + 1
        for node, found in copies.items()
    }
    # Retention removes old segments on every replica in its own time.
    start = max(starts.values())
    if len(set(ends.values())) > 1 and name != METADATA:
        yield f"{name} ends at {ends}"
    end = min(ends.values())
    first, *others = copies
    one = {base: batch for base, batch in copies[first].items() if start <= base < end}
    for node in others:
        other = {base: batch for base, batch in copies[node].items() if start <= base < end}
        if one != other:
            at = min(base for base in one.keys() | other.keys() if one.get(base) != other.get(base))
            mine, its = one.get(at), other.get(at)
            yield (
                f"{name} differs at {at}: node {first} has {len(mine or b'')} bytes, "
                f"node {node} {len(its or b'')}"
                + (f", first at byte {_first_difference(mine, its)}" if mine and its else "")
            )


def gaps(name: str, found: dict[int, bytes]) -> Iterator[str]:
    """Offsets that a log which is not compacted passes over, or has twice."""
    expected: int | None = None
    for base, batch in sorted(found.items()):
        if expected is not None and base != expected:
            yield f"{name} has {base} after {expected - 1}"
        expected = last_offset(batch) + 1


def _first_difference(one: bytes, other: bytes) -> int:
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), -1)


def problems(cluster: TestCluster) -> list[str]:
    """Everything in which the directories of running nodes disagree, and the metadata log as well."""
    found: list[str] = []
    wanted = {
        name: [id for id in partition.replicas if cluster.node(id).is_running]
        for name, partition in cluster.state().partitions.items()
    }
    wanted[METADATA] = [node.id for node in cluster.running]
    for name, replicas in sorted(wanted.items()):
        copies = {id: batches(cluster.node(id).data_dir / name) for id in replicas}
        if not copies:
            continue
        found += differences(name, copies)
        if not name.startswith("__"):
            for id, copy in copies.items():
                found += gaps(f"{name} of node {id}", copy)
    return found


def check_replicas(cluster: TestCluster, seconds: float = 30.0) -> None:
    """Waits until all replicas have the same; nobody may be writing."""
    last: list[str] = []

    def are_alike() -> bool:
        last[:] = problems(cluster)
        return not last

    try:
        cluster_state.eventually("replicas are alike", are_alike, seconds)
    except TimeoutError:
        raise AssertionError("\n".join(last[:10])) from None
