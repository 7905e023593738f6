"""The options and arguments of `ottla schema`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """What a schema is written in."""

    avro = "avro"
    json = "json"
    protobuf = "protobuf"


class Level(StrEnum):
    """With which versions before it a new one has to get along."""

    none = "NONE"
    backward = "BACKWARD"
    backward_transitive = "BACKWARD_TRANSITIVE"
    forward = "FORWARD"
    forward_transitive = "FORWARD_TRANSITIVE"
    full = "FULL"
    full_transitive = "FULL_TRANSITIVE"


def _other_registry(ctx: typer.Context, url: str | None) -> str | None:
    """A broker that is named on the command line is meant, whatever the environment says."""
    sources = [ctx.get_parameter_source(name) for name in ("url", "bootstrap")]
    said = [source is not None and source.name == "COMMANDLINE" for source in sources]
    return None if said == [False, True] else url or None


def _name(subject: str | None) -> str | None:
    if subject == "":  # an empty one would stand for all of them in a path
        raise typer.BadParameter("a subject has a name")
    return subject


Url = Annotated[
    str | None,
    typer.Option(
        "--registry",
        envvar="OTTLA_REGISTRY",
        metavar="URL",
        callback=_other_registry,
        help="Another registry than the broker's: http://name:password@host:port.",
    ),
]
Subject = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT", callback=_name, help="The subject, such as orders-value.", show_default=False
    ),
]
AnySubject = Annotated[
    str | None, typer.Argument(metavar="SUBJECT", callback=_name, help="The subject.", show_default=False)
]
File = Annotated[
    str, typer.Argument(metavar="FILE", help="The schema; - is the standard input.", show_default=False)
]
Type = Annotated[
    Kind | None,
    typer.Option(
        "--type",
        "-t",
        case_sensitive=False,
        help="What it is written in, if not .avsc, .json or .proto says.",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        "-r",
        metavar="NAME=SUBJECT:VERSION",
        help="Another schema that it uses under this name; may be repeated.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
