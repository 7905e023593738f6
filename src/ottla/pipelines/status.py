"""How far the flows of a project have come, from their checkpoints and the cluster; Spark is not needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ottla.client.errors import ClientError
from ottla.pipelines import declarative
from ottla.pipelines.checkpoints import Checkpoint, Offsets, checkpoints_in
from ottla.pipelines.project import Kind, Project
from ottla.pipelines.running import running
from ottla.pipelines.topics import cluster_of, end_offsets
from ottla.protocol.errors import KafkaError


@dataclass(frozen=True)
class FlowStatus:
    """One checkpoint. `lag` is by topic; None for a topic that the cluster does not have, or does not
    tell."""

    flow: str
    batch: int | None
    committed_at: str | None
    offsets: Offsets
    lag: dict[str, int | None]
    unfinished: int | None

    def as_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "batch": self.batch,
            "committed_at": self.committed_at,
            "offsets": self.offsets,
            "lag": self.lag,
            "unfinished": self.unfinished,
        }


@dataclass(frozen=True)
class Status:
    """A project: who runs it, if anybody, and its flows. `trouble` says why lag is not known."""

    run: dict[str, Any] | None
    flows: list[FlowStatus]
    trouble: str | None


def status_of(project: Project) -> Status:
    if project.kind is Kind.DECLARATIVE:
        found = declarative.checkpoints(project)
    else:
        found = [] if "://" in project.checkpoints else checkpoints_in(Path(project.checkpoints))
    read = [(each, each.offsets(each.committed())) for each in found]
    topics = {topic for _, offsets in read for topic in offsets}
    ends: Offsets = {}
    trouble = None
    if topics:
        try:
            with cluster_of(project.surroundings()) as cluster:
                ends = end_offsets(cluster, topics)
        except (ClientError, KafkaError) as error:
            trouble = str(error)
    return Status(running(project), [_flow(each, offsets, ends) for each, offsets in read], trouble)


def _flow(checkpoint: Checkpoint, offsets: Offsets, ends: Offsets) -> FlowStatus:
    at = checkpoint.committed_at()
    unfinished = checkpoint.unfinished()
    return FlowStatus(
        flow=checkpoint.name,
        batch=checkpoint.committed(),
        committed_at=None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        offsets=offsets,
        lag={topic: _lag(topic, offsets, ends) for topic in _sorted(offsets)},
        unfinished=None if unfinished is None else unfinished.batch_id,
    )


def _lag(topic: str, offsets: Offsets, ends: Offsets) -> int | None:
    if topic not in ends:
        return None
    read = offsets[topic]
    return sum(max(0, end - read.get(partition, 0)) for partition, end in ends[topic].items())


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names)
