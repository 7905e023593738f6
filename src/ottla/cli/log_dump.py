"""`ottla log dump`: everything in one file, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.cli.log_files import codec_name, report
from ottla.cli.log_records import decoded, said
from ottla.cli.output import plural, print_json_line, print_table
from ottla.cli.running import Refused
from ottla.cli.times import iso
from ottla.core.types import CLUSTER_METADATA
from ottla.protocol.batch import BatchHeader, read_records
from ottla.protocol.errors import KafkaError
from ottla.storage.directory_names import parse_name
from ottla.storage.inspect.batches import Walk, batch_problem, read_batch
from ottla.storage.inspect.directory import Kind, kind_of


def dump(
    path: Path, *, as_json: bool, headers_only: bool, from_offset: int, count: int | None, topic: str | None
) -> bool:
    """Print the file; whether it is sound."""
    kind = kind_of(path.name)
    if kind in (Kind.LOG, Kind.METADATA_SNAPSHOT) or path.name.endswith((".log.deleted", ".log.swap")):
        return _dump_batches(path, as_json, headers_only, from_offset, count, topic or _topic_of(path))
    made = report(path)
    if kind in (Kind.UNKNOWN, Kind.LEFTOVER, Kind.LOCK):
        raise Refused(
            f"{path.name} is not a file of Kafka's that has entries; `ottla log inspect` shows a directory"
        )
    if as_json:
        for row in made.rows:
            print_json_line(dict(zip(made.columns, row, strict=True)))
    else:
        print(*made.says, sep="\n")
        print_table(made.columns, made.rows)
    if made.problem is not None:
        _complain(made.problem, as_json)
    return made.problem is None


def _topic_of(path: Path) -> str:
    if path.name.endswith(".checkpoint"):
        return CLUSTER_METADATA
    partition = parse_name(path.resolve().parent.name)[1]
    return "" if partition is None else partition.topic


def _dump_batches(
    path: Path, as_json: bool, headers_only: bool, from_offset: int, count: int | None, topic: str
) -> bool:
    is_sound = True
    shown = 0
    walk = Walk(path)
    for found in walk:
        if found.header.last_offset < from_offset:
            continue
        if count is not None and shown >= count:
            return is_sound
        data = read_batch(path, found)
        problem = batch_problem(data)
        is_sound = is_sound and problem is None
        _print_batch(found.position, found.header, problem, as_json)
        if headers_only:
            shown += 1
            continue
        for record in _records(data):
            if record.offset >= from_offset and (count is None or shown < count):
                shown += 1
                told = decoded(topic, found.header, record)
                if as_json:
                    print_json_line(told)
                else:
                    print(f"  {told['offset']}  {iso(told['timestamp'])}  {said(told)}")
    if walk.unwritten and not as_json:
        print(f"{walk.unwritten} bytes at the end are set aside and not written yet")
    if walk.problem is not None:
        _complain(walk.problem, as_json)
        return False
    return is_sound


def _records(data: bytes) -> Iterator[Any]:
    try:
        yield from read_records(data)
    except KafkaError:
        return  # the batch's line has said so


def _print_batch(position: int, header: BatchHeader, problem: str | None, as_json: bool) -> None:
    if as_json:
        print_json_line(
            {
                "batch": header._asdict()
                | {"position": position, "size": header.size, "last_offset": header.last_offset},
                "problem": problem,
            }
        )
        return
    marks = [codec_name(header.codec)]
    marks += ["transactional"] if header.is_transactional else []
    marks += ["control"] if header.is_control else []
    marks += ["log append time"] if header.is_log_append_time else []
    who = ""
    if header.producer_id >= 0:
        who = f", producer {header.producer_id} epoch {header.producer_epoch} sequence {header.base_sequence}"
    print(
        f"batch at byte {position}: offsets {header.base_offset} to {header.last_offset}, "
        f"{plural(header.record_count, 'record')}, {header.size} bytes, "
        f"leader epoch {header.partition_leader_epoch}, {', '.join(marks)}{who}"
    )
    if problem is not None:
        print(f"  ! {problem}")


def _complain(problem: str, as_json: bool) -> None:
    if as_json:
        print_json_line({"problem": problem})
    else:
        print(f"! {problem}")
