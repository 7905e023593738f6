"""DumpLogSegments over every file of a data directory, and what it objects to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools.kafka.run import ToolFailed, run_tool

DECODERS = {
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
OBJECTIONS = (
    "isvalid: false",
    "Found timestamp mismatch",
    "Found out of order timestamp",
    "Non-consecutive offsets",
    "Mismatches in",
    "trailing bytes",
    "Could not",
    "Exception",
    "Error",
    "corrupt",
)
ONE_RUN = 200  # files per process, for the sake of the command line


def dump_directory(directory: Path) -> list[str]:
    """Everything that the tool finds wrong, with the file it is about."""
    return [problem for arguments, files in runs(directory) for problem in dump(arguments, files)]


def runs(directory: Path) -> Iterator[tuple[list[str], list[Path]]]:
    """Files that the same flags fit. Metadata snapshots and logs need a decoder, as internal topics do."""
    plain: dict[str, list[Path]] = {}
    internal: dict[str, list[Path]] = {}
    for file in sorted(directory.glob("*/*")):
        topic = file.parent.name.rpartition("-")[0]
        if file.suffix == ".log" and topic in DECODERS:
            internal.setdefault(DECODERS[topic], []).append(file)
        elif worth_dumping(file):
            plain.setdefault(file.suffix, []).append(file)
    for decoder, files in internal.items():
        yield ["--deep-iteration", decoder], files
    plain.setdefault(".checkpoint", []).extend(sorted(directory.glob("*.checkpoint")))
    for suffix, flags in (
        (".log", ["--deep-iteration"]),
        (".log", ["--deep-iteration", "--print-data-log"]),
        (".checkpoint", [DECODERS["__cluster_metadata"]]),
        (".index", []),
        (".index", ["--index-sanity-check"]),
        (".index", ["--verify-index-only"]),
        (".timeindex", []),
        (".timeindex", ["--index-sanity-check"]),
        (".timeindex", ["--verify-index-only"]),
        (".txnindex", []),
        (".snapshot", []),
    ):
        files = plain.get(suffix, [])
        for start in range(0, len(files), ONE_RUN):
            yield flags, files[start : start + ONE_RUN]


def worth_dumping(file: Path) -> bool:
    """The tool cannot map an empty index, which is what a segment without entries has.

    A partition on its way out is of no interest, and may go while the tool looks at it.
    """
    return not file.parent.name.endswith("-delete") and (file.suffix == ".log" or file.stat().st_size > 0)


def dump(flags: list[str], files: list[Path]) -> list[str]:
    try:
        output = run_tool("dump-log", "--files", ",".join(map(str, files)), *flags)
    except ToolFailed as error:
        return str(error).splitlines()[-12:]
    problems, current = [], ""
    for line in output.splitlines():
        if line.startswith("Dumping "):
            current = line.removeprefix("Dumping ")
        elif any(objection in line for objection in OBJECTIONS) and "payload" not in line:
            problems.append(f"{current} ({' '.join(flags)}): {line[:300]}")
    return problems
