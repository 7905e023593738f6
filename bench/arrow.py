"""`python -m bench.arrow`: records to Arrow columns and back, in million records a second of one core.

A figure is the best of many short runs, by processor time. Unless it says otherwise there is one response of
1 MiB, of records with a key of 9 bytes and a value of 100, and every column but headers is made of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from ottla.arrow.decode import Decoder
from ottla.arrow.encode import Encoder, partition_keys, rows_by_partition
from ottla.arrow.readers import Reader, aiokafka_reader, compiled_reader, python_reader
from ottla.protocol.batch import Record, set_base_offset, write_batch
from ottla.protocol.compression import NAMES

NOW = 1_700_000_000_000
RUNS = 200
CODECS = range(5)


def log(records: int, per_batch: int, *, value: int = 100, codec: int = 0, headers: int = 0) -> bytes:
    """Batches of equal content, with offsets as in a log."""
    some = [
        Record(0, NOW + i, b"key%06d" % i, (b"%d," % i * value)[:value], [("name", b"value")] * headers)
        for i in range(per_batch)
    ]
    batch = write_batch(some, codec=codec)
    data = bytearray()
    for base_offset in range(0, records, per_batch):
        set_base_offset(batch, base_offset)
        data += batch
    return bytes(data)


def rate(records: int, act: Callable[[], object], runs: int = RUNS) -> float:
    """Million records a second."""
    best = float("inf")
    for _ in range(runs):
        begin = time.process_time_ns()
        act()
        best = min(best, time.process_time_ns() - begin)
    return records / best * 1000


def decoding(reader: Reader) -> Iterator[tuple[str, float]]:
    scale = 1 if reader.name == "compiled" else 10

    def measured(data: bytes, records: int, **options: object) -> float:
        decoder = Decoder("t", 0, reader=reader, **options)  # type: ignore[arg-type]
        assert len(decoder.decode(data, start=0)) == records
        return rate(records, lambda: decoder.decode(data, start=0), RUNS // scale)

    records = 9_800 // scale
    plain = log(records, 140)
    yield "16 KiB batches", measured(plain, records, verify_crc=False)
    yield "16 KiB batches, CRC", measured(plain, records)
    yield "16 KiB batches, CRC, value only", measured(plain, records, columns=["value"])
    yield "1 MiB batch, CRC", measured(log(records, records), records)
    yield "16 MiB of 16 KiB batches, CRC", measured(log(16 * records, 140), 16 * records)
    yield "1 record a batch, CRC", measured(log(records, 1), records)
    yield "1 KiB values, CRC", measured(log(records // 7, 14, value=1024), records // 7)
    yield "two headers, CRC", measured(log(records, 140, headers=2), records, headers=True)
    for codec in CODECS[1:]:
        yield f"{NAMES[codec]}, CRC", measured(log(records, 140, codec=codec), records)


def encoding() -> Iterator[tuple[str, float]]:
    records = 10_000
    batch = Decoder("t", 0).decode(log(records, 100), start=0).select(["key", "value"])
    encoder = Encoder(batch, now_ms=NOW)
    partitions = partition_keys(batch["key"], 12)
    order = pa.concat_arrays(list(rows_by_partition(partitions, 12).values()))
    yield "murmur2 of keys", rate(records, partial(partition_keys, batch["key"], 12))
    yield "rows by partition", rate(records, partial(rows_by_partition, partitions, 12))
    yield "rows in order", rate(records, encoder.encode)
    yield "rows of 12 partitions", rate(records, partial(encoder.encode, order))
    for codec in CODECS[1:]:
        yield NAMES[codec], rate(records, partial(encoder.encode, codec=codec), RUNS // 10)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench.arrow", description=__doc__)
    options.add_argument("--all-readers", action="store_true", help="the slower readers as well")
    given = options.parse_args()
    found = (compiled_reader(), aiokafka_reader(), python_reader())
    readers = [reader for reader in found if reader is not None]
    if not given.all_readers:
        readers = readers[:1]
    table = Table("", "million records/s", title="Arrow, one core")
    table.columns[1].justify = "right"
    plain = log(9_800, 140)
    copy = bytearray(plain)
    table.add_row(
        "floor: one copy of the bytes", f"{rate(9_800, lambda: copy.__setitem__(slice(None), plain)):.1f}"
    )
    for reader in readers:
        table.add_section()
        for name, figure in decoding(reader):
            table.add_row(f"decode ({reader.name}): {name}", f"{figure:.2f}")
    table.add_section()
    for name, figure in encoding():
        table.add_row(f"encode: {name}", f"{figure:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
