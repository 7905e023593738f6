"""`ottla log inspect`: a partition's directory, or a whole log directory, explained."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ottla.cli import log_lookup
from ottla.cli.log_files import ROWS_SHOWN, Contents, FileReport, contents, report, summaries_of
from ottla.cli.output import for_people, in_bytes, plural, print_json, print_table
from ottla.cli.running import Misused, Refused
from ottla.core.types import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.storage.directory_names import Kind as DirectoryKind
from ottla.storage.inspect.directory import (
    Kind,
    PartitionDirectory,
    base_offset_of,
    is_partition_directory,
    kind_of,
    partition_directories,
    read_partition_directory,
)
from ottla.storage.inspect.lookup import Lookup, find_offset, find_time
from ottla.storage.inspect.verify import Problem, verify_partition

TOPICS: Final = {
    CONSUMER_OFFSETS: "This topic is where consumers keep their place: each record is a bookmark of a group, "
    "and the last one of each counts.",
    TRANSACTION_STATE: "This topic is where transactions keep their state, so that one outlives the broker "
    "that coordinates it.",
    SHARE_GROUP_STATE: "This topic is where share groups keep which records were delivered and acknowledged.",
    CLUSTER_METADATA: "This is the cluster's own log: topics, partitions, brokers and settings are what its "
    "records add up to.",
}
TEXT_WIDTH: Final = 100
KINDS: Final = {
    DirectoryKind.DELETED: "The topic was deleted; these files go in a while.",
    DirectoryKind.STRAY: "No topic claims this directory; it is kept for you to look at.",
    DirectoryKind.FUTURE: "A copy that is on its way from another directory.",
}


def inspect(path: Path, *, offset: int | None, timestamp: int | None, verify: bool, as_json: bool) -> bool:
    """Print what there is; whether all of it is sound, as far as it was looked at."""
    if not path.is_dir():
        raise Refused(
            f"{path} is not a directory; `ottla log dump` shows a single file"
            if path.exists()
            else f"there is no {path}"
        )
    if is_partition_directory(path):
        return _inspect_partition(read_partition_directory(path), offset, timestamp, verify, as_json)
    partitions = partition_directories(path)
    if not partitions:
        raise Refused(f"{path} holds neither a partition's files nor directories of partitions")
    if offset is not None or timestamp is not None:
        raise Misused(
            f"{path} holds {len(partitions)} partitions; look something up in one of them, such as "
            f"{partitions[0].path}"
        )
    return _inspect_log_directory(path, partitions, verify, as_json)


# --- one partition -----------------------------------------------------------------------


def _inspect_partition(
    directory: PartitionDirectory, offset: int | None, timestamp: int | None, verify: bool, as_json: bool
) -> bool:
    lookups = []
    if offset is not None:
        lookups.append(find_offset(directory, offset))
    if timestamp is not None:
        lookups.append(find_time(directory, timestamp))
    if lookups:
        return _tell_lookups(directory, lookups, verify, as_json)
    summaries = summaries_of(directory)
    by_base = {summary.base_offset: summary for summary in summaries}
    files = [
        report(path, by_base.get(base_offset_of(path.name)) if kind_of(path.name) is Kind.LOG else None)
        for path in sorted(directory.files, key=_in_reading_order)
        if path.exists()  # a running broker may have removed it since
    ]
    inside = contents(directory, summaries)
    problems = verify_partition(directory) if verify else []
    told_of = {each.file for each in problems}
    problems += [
        Problem(each.name, each.problem)
        for each in files
        if verify and each.problem is not None and each.name not in told_of
    ]
    segments = [
        {
            "base_offset": each.base_offset,
            "first_offset": each.first_offset,
            "last_offset": each.last_offset,
            "records": each.records,
            "batches": len(each.batches),
            "bytes": each.size - each.unwritten,
            "first_timestamp": each.first_timestamp,
            "max_timestamp": each.max_timestamp,
        }
        for each in summaries
    ]
    if as_json:
        print_json(
            {
                "directory": str(directory.path),
                "topic": directory.topic or None,
                "partition": None if directory.partition is None else directory.partition.partition,
                "segments": segments,
                "files": [each.to_json() for each in files],
                "contents": [asdict(each) for each in inside],
                **_verified(verify, problems),
            }
        )
    else:
        _print_partition(directory, segments, files, inside)
        if verify:
            _print_problems(problems)
    return not problems


def _tell_lookups(directory: PartitionDirectory, lookups: list[Lookup], verify: bool, as_json: bool) -> bool:
    problems = verify_partition(directory) if verify else []
    if as_json:
        told = [log_lookup.to_json(each, directory.topic) for each in lookups]
        print_json({"lookups": told, **_verified(verify, problems)} if verify else told)
    else:
        for each in lookups:
            _print_steps(log_lookup.told(each, directory.topic))
        if verify:
            _print_problems(problems)
    return not problems and all(each.problem is None for each in lookups)


def _verified(verify: bool, problems: list[Problem]) -> dict[str, Any]:
    return {"sound": not problems, "problems": [each._asdict() for each in problems]} if verify else {}


def _print_partition(
    directory: PartitionDirectory,
    segments: list[dict[str, Any]],
    files: list[FileReport],
    inside: list[Contents],
) -> None:
    partition = directory.partition
    _title(
        f"{directory.path}" if partition is None else f"{partition.topic}, partition {partition.partition}"
    )
    size = sum(each["bytes"] for each in segments)
    records = sum(each["records"] for each in segments)
    print(
        f"A partition is a directory of files: {plural(len(segments), 'segment')} with "
        f"{plural(records, 'record')}, {in_bytes(size)}."
    )
    if segments:
        end = max(
            (each["last_offset"] + 1 for each in segments if each["last_offset"] >= 0),
            default=segments[-1]["base_offset"],
        )
        print(f"Offsets {segments[0]['base_offset']} to {end} (where the next record goes).")
    for note in (TOPICS.get(directory.topic), KINDS.get(directory.kind)):
        if note:
            print(note)
    for each in inside:
        _title(each.title)
        _print_rows(each.columns, each.rows)
    _print_files(files)


def _print_files(files: list[FileReport]) -> None:
    explained = set()
    for made in files:
        _title(f"{made.name}  {in_bytes(made.size)}")
        if made.why not in explained:  # once is enough
            explained.add(made.why)
            _paragraph(made.why)
        for line in made.says:
            _paragraph(line)
        if made.problem is not None:
            _paragraph(f"! {made.problem}")
        if made.rows:
            _print_rows(made.columns, made.rows)


def _print_rows(columns: list[str], rows: list[list[Any]]) -> None:
    if not rows:
        print("None.")
        return
    print_table(columns, rows[:ROWS_SHOWN])
    if len(rows) > ROWS_SHOWN:
        last = "  ".join(str(cell) for cell in rows[-1])
        _paragraph(f"... and {len(rows) - ROWS_SHOWN:,} more, up to {last}. `ottla log dump` shows them all.")


def _in_reading_order(path: Path) -> tuple[bool, str, int]:
    """Segment by segment, the data before what helps to find it; then the files about the whole partition."""
    kind = kind_of(path.name)
    order = (Kind.LOG, Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT)
    return (False, path.name[:20], order.index(kind)) if kind in order else (True, path.name, 0)


# --- a log directory ---------------------------------------------------------------------


def _inspect_log_directory(
    path: Path, partitions: list[PartitionDirectory], verify: bool, as_json: bool
) -> bool:
    files = [report(each) for each in sorted(path.iterdir()) if each.is_file()]
    columns = ["directory", "segments", "records", "bytes", "start offset", "end offset"]
    rows: list[list[Any]] = []
    problems: list[Problem] = []
    for each in partitions:
        summaries = summaries_of(each)
        start = summaries[0].base_offset if summaries else 0
        end = summaries[-1].end_offset if summaries else 0
        records = sum(summary.records for summary in summaries)
        size = sum(summary.size - summary.unwritten for summary in summaries)
        rows.append([each.path.name, len(summaries), records, size, start, end])
        if verify:
            problems += [
                Problem(f"{each.path.name}/{found.file}", found.what) for found in verify_partition(each)
            ]
    problems += [Problem(each.name, each.problem) for each in files if verify and each.problem is not None]
    if as_json:
        print_json(
            {
                "directory": str(path),
                "files": [each.to_json() for each in files],
                "partitions": [dict(zip(columns, row, strict=True)) for row in rows],
                **_verified(verify, problems),
            }
        )
        return not problems
    _title(f"{path}: a log directory with {plural(len(partitions), 'partition')}")
    print("Each partition is a directory of its own; `ottla log inspect` on one of them goes inside.")
    busy = [row for row in rows if row[5]]
    print_table(columns, busy)
    if len(busy) < len(rows):
        print(f"{plural(len(rows) - len(busy), 'partition')} more without any records.")
    _print_files(files)
    if verify:
        _print_problems(problems)
    return not problems


# --- on the page -------------------------------------------------------------------------


def _title(text: str) -> None:
    print()
    if not for_people():
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text, style="bold cyan"))


def _paragraph(text: str) -> None:
    print(textwrap.fill(text, TEXT_WIDTH) if for_people() else text)


def _print_steps(steps: list[str]) -> None:
    for number, step in enumerate(steps, start=1):
        _paragraph(f"{number}. {step}")


def _print_problems(problems: list[Problem]) -> None:
    if not problems:
        _title("Verified: every checksum, every index entry and the order of everything is right.")
        return
    _title(f"Verified: {plural(len(problems), 'problem')}")
    for each in problems:
        print(f"! {each.file}: {each.what}")
