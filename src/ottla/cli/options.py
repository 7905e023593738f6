"""The options that many commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="OTTLA_BOOTSTRAP",
        metavar="HOST:PORT",
        help="A broker of the cluster, or several with commas.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="How long to try before giving up.")
]

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_TIMEOUT = 30.0


def new_app(name: str, about: str) -> typer.Typer:
    """A group of commands: plain help and plain errors, since rich is slow to import."""
    return typer.Typer(
        name=name, help=about, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )


def examples(*lines: str) -> str:
    """The end of a help text: lines to copy, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
