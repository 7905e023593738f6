"""`ottla log`: look straight into the files of a broker, Ottla's or Apache Kafka's. It never writes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.options import AsJson, examples, new_app

app = new_app("log", "Look into the files of a broker, Ottla's or Apache Kafka's, without changing them.")


@app.command(
    epilog=examples(
        "ottla log inspect data/orders-0",
        "ottla log inspect data/orders-0 --find-offset 4711",
        "ottla log inspect data/orders-0 --find-time '2 hours ago'",
        "ottla log inspect data --verify",
    )
)
def inspect(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A partition's directory, or a broker's data directory.")
    ],
    find_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", min=0, help="Show how this offset is found.")
    ] = None,
    find_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Show how the first record from this time on is found.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check checksums, indexes and order; exits with 1 if any is wrong."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say file by file what is inside and why it exists, with the real figures.

    It may be used while the broker runs. Partitions of internal topics are decoded: committed offsets,
    transactions, the cluster's metadata.
    """
    from ottla.cli.log_show import inspect as show
    from ottla.cli.running import DONE, FAILED, guarded
    from ottla.cli.times import local_now, parse_time

    def command() -> bool:
        moment = None if find_time is None else parse_time(find_time, local_now())
        return show(directory, offset=find_offset, timestamp=moment, verify=verify, as_json=as_json)

    raise typer.Exit(DONE if guarded(command) else FAILED)


@app.command(
    epilog=examples(
        "ottla log dump data/orders-0/00000000000000000000.log",
        "ottla log dump data/orders-0/00000000000000000000.log --from 4711 --count 10",
        "ottla log dump data/orders-0/00000000000000000000.index --json",
    )
)
def dump(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .log, an index, a snapshot or a checkpoint.")
    ],
    from_offset: Annotated[
        int, typer.Option("--from", metavar="OFFSET", min=0, help="Begin with this offset.")
    ] = 0,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Print no more than so many records.")
    ] = None,
    headers_only: Annotated[
        bool, typer.Option("--headers-only", help="Print batches without their records.")
    ] = False,
    topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Decode as this topic, where the directory does not say."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print everything in one file, entry by entry; exits with 1 if it is damaged."""
    from ottla.cli.log_dump import dump as show
    from ottla.cli.running import DONE, FAILED, guarded

    def command() -> bool:
        return show(
            file,
            as_json=as_json,
            headers_only=headers_only,
            from_offset=from_offset,
            count=count,
            topic=topic,
        )

    raise typer.Exit(DONE if guarded(command) else FAILED)
