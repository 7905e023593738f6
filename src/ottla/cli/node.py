"""`ottla node`: a node of Maelstrom, with a broker of its own behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def node(
    data_dir: Annotated[
        Path | None, typer.Option(help="Keep the data in this directory; else it is gone at the end.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Serve Kafka clients on this port; 0 picks a free one.")
    ] = 0,
    full: Annotated[
        bool, typer.Option("--full", help="Answer appends and reads with segment, timestamp and next_offset.")
    ] = False,
) -> None:
    """Read Maelstrom messages on stdin, one JSON object a line, and answer them on stdout.

    Knows init, partition_append, partition_read and partition_info, and Maelstrom's kafka workload: send,
    poll, commit_offsets, list_committed_offsets. What it stores are the topics of a broker that other clients
    can reach while it runs; its address is on stderr.
    """
    from ottla.cli import logs
    from ottla.gateways import stdio

    with logs.configured("warning"):
        raise typer.Exit(stdio.serve(data_dir, port, full))
