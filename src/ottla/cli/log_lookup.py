"""A lookup told as a story: which segment, which index entry, how far the walk went."""

from __future__ import annotations

from typing import Any

from ottla.cli.log_records import decoded, said
from ottla.cli.output import in_bytes, plural
from ottla.cli.times import iso
from ottla.storage.inspect.lookup import Lookup, Search


def told(lookup: Lookup, topic: str) -> list[str]:
    """The steps of a lookup, a line each."""
    steps = [_segment_step(lookup)]
    if lookup.segment is None:
        return steps
    name = f"{lookup.segment:020d}"
    start = "its first byte"
    if lookup.by_time and lookup.time_index is not None:
        steps.append(f"{name}.timeindex: " + _search_step(lookup.time_index, by_time=True))
    if lookup.offset_index is None:
        steps.append(f"{name}.index is missing, so the .log is read from its first byte.")
    else:
        steps.append(f"{name}.index: " + _search_step(lookup.offset_index, by_time=False))
        start = f"byte {lookup.position}"
    walked = len(lookup.scanned)
    batches = "1 batch" if walked == 1 else f"{walked} batches"
    read = f"{in_bytes(lookup.scanned_bytes)} of {in_bytes(lookup.segment_bytes)}"
    steps.append(f"{name}.log: walk from {start} over the headers of {batches}, {read}.")
    steps += _result(lookup, topic)
    return steps


def _segment_step(lookup: Lookup) -> str:
    count = len(lookup.segments)
    if not lookup.segments:
        return "There is no segment here at all."
    if lookup.by_time:
        if lookup.segment is None:
            return (
                f"No segment has a record as young as {iso(lookup.wanted)}: the answer is the end of the log."
            )
        passed = len(lookup.passed) - 1
        over = f"{passed} older {'one is' if passed == 1 else 'ones are'} passed over, " if passed else ""
        return (
            f"Of {plural(count, 'segment')}, {over}{lookup.segment:020d}.log is the first with a record from "
            f"{iso(lookup.wanted)} or later: its youngest is of {iso(lookup.passed[-1][1])}."
        )
    if lookup.segment is None:
        return f"Offset {lookup.wanted} was deleted: the first segment begins with {lookup.segments[0]}."
    bases = ", ".join(map(str, lookup.segments[:6])) + (", ..." if count > 6 else "")
    return (
        f"{count} {'segment begins' if count == 1 else 'segments begin'} at {bases}: the last one not after "
        f"{lookup.wanted} is {lookup.segment:020d}.log."
    )


def _search_step(search: Search, *, by_time: bool) -> str:
    if not search.count:
        return "no entries in the file, so the walk begins at the first byte of the segment."
    entries = f"{search.count:,} {'entry' if search.count == 1 else 'entries'}"
    looks = "; ".join(
        f"#{probe.number} {_entry(probe.entry, by_time)} {'not too far' if probe.is_floor else 'too far'}"
        for probe in search.probes
    )
    if search.found is None:
        return f"{entries}, {looks}. None is early enough, so the walk begins at the first byte."
    found = _entry(search.found, by_time)
    return f"{entries}, binary search in {plural(len(search.probes), 'look')}: {looks}. Go to {found}."


def _entry(entry: tuple[int, int], by_time: bool) -> str:
    if by_time:
        return f"({iso(entry[0])}, offset {entry[1]})"
    return f"(offset {entry[0]}, byte {entry[1]})"


def _result(lookup: Lookup, topic: str) -> list[str]:
    if lookup.problem is not None:
        return [f"The search ends here: {lookup.problem}. With --verify all damage is listed."]
    if lookup.batch is None:
        return ["There is nothing there yet: it is past the end of the log."]
    header = lookup.batch.header
    place = (
        f"The batch at byte {lookup.batch.position} has offsets {header.base_offset} to {header.last_offset}"
    )
    if lookup.record is None:
        return [f"{place}, but the record itself is gone: compaction has removed it."]
    record = decoded(topic, header, lookup.record)
    lines = [f"{place}; its records are read to the one that was asked for."]
    if not lookup.by_time and lookup.record.offset != lookup.wanted:
        lines.append(
            f"Offset {lookup.wanted} itself is gone (compaction, or a marker); the next one there is:"
        )
    lines.append(f"Found: offset {record['offset']}, {iso(record['timestamp'])}: {said(record)}")
    return lines


def to_json(lookup: Lookup, topic: str) -> dict[str, Any]:
    found = None
    if lookup.batch is not None and lookup.record is not None:
        found = decoded(topic, lookup.batch.header, lookup.record)
    return {
        "wanted": lookup.wanted,
        "by": "time" if lookup.by_time else "offset",
        "segment": lookup.segment,
        "time_index": _search_json(lookup.time_index),
        "offset_index": _search_json(lookup.offset_index),
        "position": lookup.position,
        "batches_walked": len(lookup.scanned),
        "bytes_walked": lookup.scanned_bytes,
        "record": found,
        "problem": lookup.problem,
    }


def _search_json(search: Search | None) -> dict[str, Any] | None:
    if search is None:
        return None
    probes = [{"entry": p.number, "holds": list(p.entry), "not_too_far": p.is_floor} for p in search.probes]
    return {"entries": search.count, "looks": probes, "found": search.found and list(search.found)}
