"""`ottla pipeline`: write, run and look after data pipelines on Spark."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, AsJson, examples, new_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.pipelines.project import Project

app = new_app("pipeline", "Write, run and look after data pipelines on Spark.")

Where = Annotated[
    Path,
    typer.Argument(
        metavar="[PATH]",
        help="A project's folder, a Python file or a spark-pipeline.yml.",
        show_default=False,
    ),
]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap", "-b", metavar="HOST:PORT", help="A broker of the cluster, instead of pipeline.toml's."
    ),
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's master, such as local[4] or spark://host:7077."),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="What Spark says on stderr, instead of in .ottla/spark.log and .out."),
]


@app.command(
    epilog=examples(
        "ottla pipeline init shop && cd shop && ottla pipeline run", "ottla pipeline init shop --sdp"
    )
)
def init(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="The folder to make.", show_default=False)],
    sdp: Annotated[
        bool, typer.Option("--sdp", help="Spark's own declarative pipeline instead of flows.")
    ] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Write a small project that runs as it is."""
    from ottla.pipelines.templates import write_project

    def command() -> None:
        for file in write_project(name, declarative=sdp, bootstrap=bootstrap or DEFAULT_BOOTSTRAP):
            print(f"wrote {file}")
        print(f"\nNext: cd {name} && ottla pipeline run")

    _guarded(command)


@app.command(
    epilog=examples(
        "ottla pipeline run",
        "ottla pipeline run --available-now --json | jq .rows_in",
        "ottla pipeline run shop --full-refresh --yes",
        "ottla pipeline run shop/pipeline.py --master spark://head:7077",
    )
)
def run(
    path: Where = Path(),
    master: Master = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Read what there is, then end.")
    ] = False,
    full_refresh: Annotated[
        bool, typer.Option("--full-refresh", help="Remove checkpoints and outputs, and start over.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline, until Ctrl-C or, with --available-now, until it has read what there is.

    Ctrl-C stops after the batch, a second one at once.
    """
    from ottla.cli.asking import confirm
    from ottla.cli.output import for_people
    from ottla.cli.running import INTERRUPTED
    from ottla.pipelines.errors import require
    from ottla.pipelines.project import Kind
    from ottla.pipelines.running import held

    def command() -> None:
        project = _find(path, bootstrap=bootstrap, master=master)
        require("pyspark", "spark")  # before topics are made for a run that cannot be
        with held(project):
            if project.kind is Kind.DECLARATIVE:
                if full_refresh:
                    confirm(f"Remove and compute again all tables of {project.name}?", yes)
                _run_declarative(project, full_refresh=full_refresh, verbose=verbose, as_json=as_json)
                return
            from ottla.pipelines.environment import open_session
            from ottla.pipelines.reports import report_for
            from ottla.pipelines.run import Wishes
            from ottla.pipelines.run import run as run_flows
            from ottla.pipelines.topics import seed

            report = report_for(as_json=as_json, on_terminal=for_people())
            for line in seed(project):
                report.note(line)
            wishes = Wishes(available_now, full_refresh, lambda question: confirm(question, yes))
            with _starting(as_json=as_json):
                spark = open_session(project, verbose=verbose)
            try:
                stopped_at_once = run_flows(project, spark, report, wishes)
            finally:
                spark.stop()
        if stopped_at_once:
            raise typer.Exit(INTERRUPTED)

    _guarded(command)


@app.command("dry-run", epilog=examples("ottla pipeline dry-run", "ottla pipeline dry-run --json"))
def dry_run(
    path: Where = Path(),
    master: Master = None,
    bootstrap: Bootstrap = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Check a pipeline without running it: its flows, names, types and options."""
    from ottla.pipelines.project import Kind

    def command() -> None:
        project = _find(path, bootstrap=bootstrap, master=master)
        if project.kind is Kind.DECLARATIVE:
            _run_declarative(project, dry=True, verbose=verbose, as_json=as_json)
            return
        from ottla.cli.output import print_json, print_table
        from ottla.pipelines.environment import open_session
        from ottla.pipelines.reports import report_for
        from ottla.pipelines.run import dry_run as check

        with _starting(as_json=as_json):
            spark = open_session(project, verbose=verbose)
        try:
            queries = check(project, spark, report_for(as_json=as_json, on_terminal=False))
        finally:
            spark.stop()
        if as_json:
            print_json(
                [
                    {"flow": q.flow, "topics": list(q.topics), "sink": q.sink, "columns": list(q.columns)}
                    for q in queries
                ]
            )
            return
        rows = [[q.flow, ", ".join(q.topics) or "-", q.sink, ", ".join(q.columns) or "-"] for q in queries]
        print_table(["flow", "reads", "writes", "columns"], rows)

    _guarded(command)


@app.command(epilog=examples("ottla pipeline status", "ottla pipeline status --json | jq .flows"))
def status(path: Where = Path(), bootstrap: Bootstrap = None, as_json: AsJson = False) -> None:
    """Show how far each flow has come, and how far its topics are ahead."""
    from ottla.cli.output import print_json, print_table
    from ottla.pipelines.status import status_of

    def command() -> None:
        project = _find(path, bootstrap=bootstrap)
        found = status_of(project)
        if as_json:
            flows = [each.as_json() for each in found.flows]
            print_json({"project": project.name, "run": found.run, "flows": flows, "trouble": found.trouble})
            return
        if found.run is not None:
            print(f"{project.name} runs as process {found.run.get('pid')} since {found.run.get('since')}")
        else:
            print(f"{project.name} is not running")
        rows = [
            [each.flow, each.batch, each.committed_at, topic, behind]
            for each in found.flows
            for topic, behind in (each.lag or {"-": None}).items()
        ]
        print_table(
            ["flow", "batch", "committed", "topic", "lag"],
            rows,
            empty=f"no flow has run yet; there is no checkpoint below {project.checkpoints}",
        )
        if found.trouble is not None:
            print(f"lag is not known: {found.trouble}", file=sys.stderr)

    _guarded(command)


def _find(path: Path, **given: str | None) -> Project:
    """The project, reached with the client properties that were given before the command."""
    from ottla.cli.client_properties import properties
    from ottla.client.security import is_security_property
    from ottla.pipelines.project import find

    kafka = {name: value for name, value in properties().items() if is_security_property(name)}
    return find(path, kafka=kafka, **given)


@contextmanager
def _starting(*, as_json: bool) -> Iterator[None]:
    """Spark takes some seconds to start: on a terminal, say so meanwhile."""
    from ottla.cli.output import for_people

    if as_json or not for_people():
        yield
        return
    from rich.console import Console

    with Console().status("starting Spark"):
        yield


def _run_declarative(
    project: Project, *, dry: bool = False, full_refresh: bool = False, verbose: bool, as_json: bool
) -> None:
    """Spark's own lines as they come; with --json each as an object."""
    from ottla.cli.output import print_json_line
    from ottla.pipelines import declarative
    from ottla.pipelines.topics import seed

    if not dry:
        for line in seed(project):
            print(line, file=sys.stderr)
    words = declarative.command(project, dry=dry, full_refresh=full_refresh)
    for line in declarative.run(words, project, declarative.environment(project, verbose=verbose)):
        if as_json:
            print_json_line({"event": "message", "text": line})
        else:
            print(line, flush=True)


def _guarded(command: Callable[[], None]) -> None:
    """Run it; what a user can act on is one line and exit code 1."""
    from ottla.cli.running import FAILED, fail, guarded
    from ottla.pipelines.errors import PipelineError

    try:
        guarded(command)
    except PipelineError as error:
        fail(str(error), FAILED)
