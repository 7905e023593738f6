from __future__ import annotations

import json
from pathlib import Path

from ottla.pipelines.checkpoints import Checkpoint, checkpoints_in, parse_offsets


def write_checkpoint(folder: Path, planned: list[str], committed: int) -> Checkpoint:
    """A directory as Spark writes it: the offsets of each planned batch, and the first batches committed."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "commits").mkdir()
    (folder / "metadata").write_text('{"id":"61af9c0a-6dd2-482a-a015-b486ce4cc939"}')
    for number, offsets in enumerate(planned):
        (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offsets}')
    for number in range(committed):
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return Checkpoint(folder.name, folder)


def orders(first: int, second: int) -> str:
    return json.dumps({"orders": {"0": first, "1": second}})


def test_a_finished_checkpoint_says_how_far_it_came(tmp_path: Path) -> None:
    found = write_checkpoint(tmp_path / "flow", [orders(1, 2), orders(5, 2)], 2)
    assert found.committed() == 1
    assert found.offsets(1) == {"orders": {0: 5, 1: 2}}
    assert found.unfinished() is None
    assert found.query_id == "61af9c0a-6dd2-482a-a015-b486ce4cc939"
    assert found.committed_at() is not None


def test_a_batch_that_was_begun_is_named_with_its_offsets(tmp_path: Path) -> None:
    found = write_checkpoint(tmp_path / "flow", [orders(1, 2), orders(5, 2)], 1).unfinished()
    assert found is not None
    assert (found.batch_id, found.describe()) == (1, "orders-0 1 to 5")


def test_the_first_batch_starts_at_the_start(tmp_path: Path) -> None:
    found = write_checkpoint(tmp_path / "flow", [orders(1, 2)], 0).unfinished()
    assert found is not None
    assert found.describe() == "orders-0 start to 1, orders-1 start to 2"


def test_what_was_never_started_says_nothing(tmp_path: Path) -> None:
    found = Checkpoint("none", tmp_path / "none")
    assert (found.committed(), found.offsets(None), found.unfinished(), found.query_id) == (
        None,
        {},
        None,
        None,
    )
    assert checkpoints_in(tmp_path / "none") == []


def test_checkpoints_are_found_by_name_and_other_folders_are_not(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "b", [], 0)
    write_checkpoint(tmp_path / "a", [], 0)
    (tmp_path / "empty").mkdir()
    assert [each.name for each in checkpoints_in(tmp_path)] == ["a", "b"]


def test_of_two_sources_that_read_a_topic_the_one_behind_counts_and_other_sources_are_left_out() -> None:
    text = "v1\n{}\n" + "\n".join(
        [orders(7, 7), "-", orders(3, 9), '{"offset":30,"timestamp":3000}', '{"a":']
    )
    assert parse_offsets(text) == {"orders": {0: 3, 1: 7}}
