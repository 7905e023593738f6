"""The topics of a pipeline, asked for and made before its flows start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from ottla.client.blocking.cluster import BlockingCluster
    from ottla.pipelines.checkpoints import Offsets
    from ottla.pipelines.context import Surroundings
    from ottla.pipelines.project import Project

ASK_SECONDS: Final = 10.0
_LINES_IN_BATCH: Final = 1000


def cluster_of(surroundings: Surroundings, timeout: float = ASK_SECONDS) -> BlockingCluster:
    """A client for the pipeline's cluster. Whoever asks closes it."""
    from ottla.client.blocking.cluster import BlockingCluster
    from ottla.client.security import Security

    security = Security.from_properties(surroundings.properties)
    return BlockingCluster(surroundings.bootstrap, client_id="ottla", security=security, timeout=timeout)


def end_offsets(cluster: BlockingCluster, topics: Iterable[str]) -> Offsets:
    """Where these topics end. One that does not exist is left out."""
    from ottla.core.types import TopicPartition

    known = cluster.topics()
    partitions = [
        TopicPartition(topic, number) for topic in topics if topic in known for number in known[topic]
    ]
    found: dict[str, dict[int, int]] = {}
    for partition, answer in cluster.list_offsets(dict.fromkeys(partitions, -1)).items():
        found.setdefault(partition.topic, {})[partition.partition] = answer.offset
    return found


def seed(project: Project) -> Iterator[str]:
    """Fill topics that do not exist with the sample events that the project has for them; says what it did.

    A topic that exists is never touched, so this happens once.
    """
    if not project.settings.seed:
        return
    with cluster_of(project.surroundings()) as cluster:
        known = cluster.topics()
        for topic, program in project.settings.seed.items():
            if topic in known:
                continue
            lines = _printed_by(project.root / program)
            cluster.create_topic(topic)
            _send(cluster, topic, lines)
            yield f"topic {topic} did not exist: made it, with {len(lines):,} sample events from {program}"


def _printed_by(program: Path) -> list[bytes]:
    if not program.is_file():
        raise PipelineError(f"{program} does not exist, but [seed] of pipeline.toml names it")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, cwd=program.parent, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise PipelineError(f"{program} failed: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout.splitlines()


def _send(cluster: BlockingCluster, topic: str, lines: list[bytes]) -> None:
    """Lines as values, spread over the topic's partitions."""
    import time

    from ottla.client.blocking.producer import IdempotentProducer
    from ottla.core.types import TopicPartition
    from ottla.protocol.batch import Record, write_batch

    count = len(cluster.topic(topic).partitions)
    producer = IdempotentProducer.start(cluster)
    for number in range(count):
        mine = lines[number::count]
        for first in range(0, len(mine), _LINES_IN_BATCH):
            chunk = mine[first : first + _LINES_IN_BATCH]
            now = int(time.time() * 1000)
            records = [Record(index, now, None, value, []) for index, value in enumerate(chunk)]
            producer.produce({TopicPartition(topic, number): write_batch(records)})
    producer.flush()
