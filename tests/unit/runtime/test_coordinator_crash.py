"""What a coordinator has answered survives a power loss at any moment, and nothing is half done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from ottla.testing.disk import Note, RecordingFiles, crash_images, write_image
from tests.unit.runtime.counting import LONG_S, CountingNode, add, get

ROUNDS = 6
CALLERS = 4


async def count(files: RecordingFiles, node: CountingNode) -> None:
    """Every caller adds one to two counters in one decision, and notes what it was told."""

    async def ask() -> None:
        for _ in range(ROUNDS):
            both = await node.counters.call("g", add(("a", 1), ("b", 1)))
            files.note(both[0])
            files.note(await node.counters.call("g", get("a")))

    async with node:
        await asyncio.wait_for(asyncio.gather(*(ask() for _ in range(CALLERS))), LONG_S)


async def recount(node: CountingNode) -> tuple[int, int]:
    async with node:
        if not node.node.image.topics:
            return 0, 0  # the topic was not there yet when the power went
        if not node.partition("g").log.end_offset:
            return 0, 0
        totals = (await asyncio.wait_for(node.loaded("g"), LONG_S)).totals
        return totals["a"], totals["b"]


@pytest.mark.parametrize("seed", range(3))
def test_answers_survive_a_power_loss(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    path = tmp_path / "data"
    path.mkdir()
    files = RecordingFiles(str(path))
    asyncio.run(count(files, CountingNode(path, files, offsets_topic_num_partitions="1")))
    operations = files.operations
    notes = [number for number, operation in enumerate(operations) if isinstance(operation, Note)]
    found = set()
    # While answers were given, when there is something to lose.
    moments = range(notes[0], notes[-1] + 2)
    for attempt, upto in enumerate(rng.sample(moments, 10)):
        told = [op.what for op in operations[:upto] if isinstance(op, Note)]
        answered = max((total for total in told if isinstance(total, int)), default=0)
        for number, image in enumerate(crash_images(operations, upto, rng, 2)):
            left = tmp_path / f"{attempt}-{number}"
            left.mkdir()
            write_image(image, str(left))
            a, b = asyncio.run(recount(CountingNode(left, offsets_topic_num_partitions="1")))
            assert a == b, "half of a decision"
            assert answered <= a <= ROUNDS * CALLERS
            found.add(a)
    assert len(found) > 3, "the losses were too much alike to show anything"
