"""`ottla produce`: lines become records."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT, AsJson, Bootstrap, Timeout, examples

EPILOG = examples(
    "echo hello | ottla produce greetings",
    "ottla produce orders -k customer-7 -H source=shop < orders.jsonl",
    "echo 'customer-7:{\"total\": 12}' | ottla produce orders -K :",
    "ottla produce logs access.log error.log --compression zstd --rate 1000",
)


class Compression(StrEnum):
    """How batches are compressed."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


class Acks(StrEnum):
    """Who must have a record before it counts."""

    all = "all"
    one = "1"
    zero = "0"


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to.", show_default=False)],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Read these files instead of stdin.", show_default=False),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", help="What is before this in a line is its key; \\t is a tab."),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="Add a header; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send everything to this partition.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Each file, or all of stdin, is one record, not each line.")
    ] = False,
    null: Annotated[
        bool, typer.Option("--null", "-Z", help="An empty value is null: a tombstone where there is a key.")
    ] = False,
    acks: Annotated[Acks, typer.Option("--acks", "-a", help="Who confirms a record.")] = Acks.all,
    compression: Annotated[
        Compression, typer.Option("--compression", "-z", help="Compress batches.")
    ] = Compression.none,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="At most so many records a second.")
    ] = None,
    no_create: Annotated[
        bool, typer.Option("--no-create", help="Do not let the broker make a topic that is missing.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Send lines of stdin, or of files, as records.

    With --json every record that has arrived is a line: where it went, and its offset.
    """
    from ottla.cli.given_values import pairs
    from ottla.cli.producing import Sending, send_everything
    from ottla.cli.running import Misused, guarded, run
    from ottla.protocol.compression import NAMES

    def check() -> Sending:
        if key is not None and key_separator is not None:
            raise Misused("--key gives all records one key, --key-separator takes it from the line; not both")
        if key_separator == "":
            raise Misused("--key-separator is empty: say what is between key and value, such as : or \\t")
        return Sending(
            topic=topic,
            files=list(files or ()),
            # As the shell gave them: bytes, which need not be text.
            key=None if key is None else os.fsencode(key),
            separator=None if key_separator is None else os.fsencode(key_separator.replace("\\t", "\t")),
            headers=[(name, os.fsencode(value)) for name, value in pairs(headers or (), "--header")],
            partition=partition,
            whole=whole,
            null=null,
            acks={"all": -1, "1": 1, "0": 0}[acks.value],
            codec=NAMES.index(compression.value),
            rate=rate,
            create=not no_create,
            tell=as_json,
        )

    sending = guarded(check)
    run(bootstrap, lambda cluster: send_everything(cluster, sending), timeout=timeout)
