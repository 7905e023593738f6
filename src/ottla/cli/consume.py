"""`ottla consume`: print the records of topics."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT, AsJson, Bootstrap, Timeout, examples

FORMAT_HELP = (
    "How to print a record: %t topic, %p partition, %o offset, %k key, %v value, %h headers, "
    "%T timestamp in ms, %d as a date, %K %V sizes, \\n \\t \\xHH."
)
EPILOG = examples(
    "ottla consume orders",
    "ottla consume orders -f '%t %p %o %k %v\\n' -n 10",
    "ottla consume orders --follow --from end",
    "ottla consume orders --time '2 hours ago' --json | jq .value",
    "ottla consume orders clicks --group readers --follow",
    "ottla consume --include 'shop-.*' --follow -f '%t %v\\n'",
)


class From(StrEnum):
    """Where to start."""

    beginning = "beginning"
    end = "end"


def consume(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="What to read.", show_default=False)
    ] = None,
    include: Annotated[
        str | None,
        typer.Option("--include", metavar="REGEX", help="Read all topics whose whole name matches."),
    ] = None,
    output: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=FORMAT_HELP)] = "%v\\n",
    start: Annotated[
        From | None, typer.Option("--from", help="Start here. Groups start here if they never committed.")
    ] = None,
    offset: Annotated[
        int | None,
        typer.Option("--offset", "-o", help="Start at this offset; -5: the last five of each partition."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="Start at this time: '2 hours ago', yesterday, 2026-05-01T12:00, or ms."),
    ] = None,
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition; may be repeated.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=0, help="Stop after so many records.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Wait for more instead of stopping at the end.")
    ] = False,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="Read as a member of this group, and commit.")
    ] = None,
    no_commit: Annotated[
        bool, typer.Option("--no-commit", help="With --group: leave the group's offsets as they are.")
    ] = False,
    committed: Annotated[
        bool, typer.Option("--committed", help="Leave out records of transactions that did not commit.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Print the records of topics.

    From the beginning to the end, unless told otherwise. With --include and --follow, topics that are made
    later are found too.
    """
    from ottla.cli.consuming import Reading, consume_group, consume_partitions
    from ottla.cli.formatting import json_line, parse_format
    from ottla.cli.running import Misused, guarded, run

    def check() -> Reading:
        if bool(topics) == (include is not None):
            raise Misused("say which topics: their names, or --include REGEX")
        try:
            pattern = None if include is None else re.compile(include)
        except re.error as error:
            raise Misused(f"--include {include}: {error}") from None
        if sum(given is not None for given in (start, offset, time)) > 1:
            raise Misused("--from, --offset and --time each say where to start; give one of them")
        if group is not None and (partitions or offset is not None or time is not None):
            raise Misused(
                "the group decides on partitions and offsets; `ottla group reset` moves it elsewhere"
            )
        return Reading(
            topics=list(topics or ()),
            include=pattern,
            partitions=list(partitions or ()),
            output=json_line if as_json else parse_format(output),
            from_end=start is From.end,
            offset=offset,
            time=time,
            count=count,
            follow=follow,
            committed_only=committed,
        )

    reading = guarded(check)
    if group is not None:
        run(bootstrap, lambda cluster: consume_group(cluster, group, reading, not no_commit), timeout=timeout)
    else:
        run(bootstrap, lambda cluster: consume_partitions(cluster, reading), timeout=timeout)
