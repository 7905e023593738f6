"""`ottla`: the commands and their options.

What a command needs is imported inside it, so that `ottla --version` and `--help` load nothing
of the broker, and `ottla serve` nothing of the other commands.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli import (
    acl,
    cluster,
    config,
    consume,
    format,
    group,
    log,
    node,
    perf,
    pipeline,
    produce,
    schema,
    topic,
    transactions,
    user,
)
from ottla.cli.commands import Commands

app = typer.Typer(
    name="ottla",
    cls=Commands,
    help="A Kafka-compatible event streaming platform in Python.",
    no_args_is_help=True,
    # Plain help and plain errors: rich costs as much to import as the rest of the command line.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class LogLevel(StrEnum):
    """How much is logged."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def _print_version(wanted: bool) -> None:
    if wanted:
        from ottla import __version__

        typer.echo(f"ottla {__version__}")
        raise typer.Exit()


@app.callback()
def ottla(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
    client_config: Annotated[
        Path | None,
        typer.Option(
            envvar="OTTLA_CLIENT_CONFIG",
            metavar="FILE",
            help="How to connect: a property file, such as Kafka's client.properties.",
        ),
    ] = None,
    client_properties: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            metavar="NAME=VALUE",
            help="One such property: security.protocol, ssl.*, sasl.*; may be repeated.",
        ),
    ] = None,
) -> None:
    """A Kafka-compatible event streaming platform in Python."""
    from ottla.cli import client_properties as properties

    properties.give(client_config, tuple(client_properties or ()))


@app.command()
def serve(
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Listen on this port; 0 picks a free one. [9092]")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Keep the data in this directory. [data]")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Read a property file, such as Kafka's server.properties.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a property; may be given many times."),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="How much to log.")] = LogLevel.info,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Allow listeners without authentication on addresses but localhost."),
    ] = False,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER",
            help="Who can log in to a cluster that is new, as SCRAM-SHA-256=[name=alice,password=secret] or "
            "[name=alice,password-file=FILE]; may be given many times.",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Run a cluster of N nodes on this machine, on N ports from this one on."
        ),
    ] = None,
) -> None:
    """Run a broker, on 127.0.0.1:9092 unless told otherwise.

    Properties have Apache Kafka's names and defaults. An environment variable sets one too:
    OTTLA_LOG_RETENTION_MS is log.retention.ms. What is further right wins: config file,
    environment, --set, --port and the other options.
    """
    from ottla.cli import serve as command
    from ottla.cli.given import Given

    given = Given(
        config=config,
        assignments=tuple(assignments or ()),
        port=port,
        data_dir=data_dir,
        insecure=insecure,
    )
    if processes is not None:
        from ottla.cli.processes import serve_processes

        if add_scram:
            raise typer.BadParameter("--add-scram is for a node alone; add users with `ottla user`")
        raise typer.Exit(serve_processes(processes, given, log_level.value))
    raise typer.Exit(command.serve(given, log_level.value, tuple(add_scram or ())))


app.command(epilog=produce.EPILOG)(produce.produce)
app.command(epilog=consume.EPILOG)(consume.consume)
app.add_typer(topic.app)
app.add_typer(group.app)
app.add_typer(config.app)
app.command(epilog=cluster.EPILOG)(cluster.cluster)
app.command(epilog=format.EPILOG)(format.format)
app.add_typer(transactions.app)
app.add_typer(acl.app)
app.add_typer(user.app)
app.add_typer(schema.app)
app.add_typer(perf.app)
app.add_typer(log.app)
app.add_typer(pipeline.app)
app.command()(node.node)


def main() -> None:
    """The entry point of the `ottla` command."""
    _open_standard_streams()
    app()


def _open_standard_streams() -> None:
    """Those that were closed by whoever started us (`<&-`) are empty: nothing else may take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
