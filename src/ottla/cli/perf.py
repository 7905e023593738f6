"""`ottla perf`: how fast is it? Records a second, bytes a second, and percentiles of the time they take."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    AsJson,
    Bootstrap,
    Timeout,
    examples,
    new_app,
)
from ottla.cli.produce import Acks, Compression

app = new_app("perf", "Measure throughput and latency.")

Topic = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="The topic; the broker makes it if missing.", show_default=False),
]
Size = Annotated[int, typer.Option("--size", "-s", min=1, help="Bytes of a record's value.")]
AcksOption = Annotated[Acks, typer.Option("--acks", "-a", help="Who confirms a record.")]
CompressionOption = Annotated[Compression, typer.Option("--compression", "-z", help="Compress batches.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


@app.command(
    epilog=examples(
        "ottla perf produce bench -n 1000000 -s 100", "ottla perf produce bench --rate 5000 --json"
    )
)
def produce(
    topic: Topic,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many records.")] = 100_000,
    size: Size = 100,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, help="At most so many records a second.")
    ] = None,
    acks: AcksOption = Acks.all,
    compression: CompressionOption = Compression.none,
    quiet: Quiet = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Send records as fast as they are taken, or at a rate, and time their confirmation."""
    from ottla.cli.measuring import Load, measure_produce, report
    from ottla.cli.running import run

    load = Load(topic, count, size, rate, acks.value, compression.value, not (quiet or as_json))
    report(run(bootstrap, lambda cluster: measure_produce(cluster, load), timeout=timeout), as_json)


@app.command(epilog=examples("ottla perf consume bench", "ottla perf consume bench -n 50000 --json"))
def consume(
    topic: Topic,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after so many records, or at the end.")
    ] = None,
    quiet: Quiet = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Read a topic from its beginning as fast as it comes."""
    from ottla.cli.measuring import measure_consume, report
    from ottla.cli.running import run

    show = not (quiet or as_json)
    report(
        run(bootstrap, lambda cluster: measure_consume(cluster, topic, count, show), timeout=timeout), as_json
    )


@app.command(epilog=examples("ottla perf latency bench", "ottla perf latency bench -n 10000 --acks 1"))
def latency(
    topic: Topic,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many records.")] = 1_000,
    size: Size = 100,
    acks: AcksOption = Acks.all,
    quiet: Quiet = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Send one record at a time and wait until a consumer has it."""
    from ottla.cli.measuring import Load, measure_latency, report
    from ottla.cli.running import run

    load = Load(topic, count, size, None, acks.value, "none", not (quiet or as_json))
    report(run(bootstrap, lambda cluster: measure_latency(cluster, load), timeout=timeout), as_json)
