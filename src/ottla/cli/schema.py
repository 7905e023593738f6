"""`ottla schema`: what is in a schema registry, the broker's own or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
from ottla.cli.schema_options import (
    AnySubject,
    File,
    Level,
    References,
    Subject,
    Type,
    Url,
    Yes,
)

if TYPE_CHECKING:
    from ottla.client.schema_registry import Registry

app = new_app("schema", "Show, register, check and remove schemas, in the broker's registry or another one.")


@app.command(
    "list", epilog=examples("ottla schema list", "ottla schema list --deleted --json | jq -r '.[].subject'")
)
def list_(
    deleted: Annotated[
        bool, typer.Option("--deleted", help="What was removed, but not for good, too.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    url: Url = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List the subjects, with their versions and levels.

    The id and the type are those of the latest version.
    """
    from ottla.cli.output import print_json, print_table
    from ottla.cli.registry import run
    from ottla.cli.schema_output import listed, listed_row

    def command(registry: Registry) -> None:
        rows = listed(registry, deleted=deleted)
        if as_json:
            print_json(rows)
            return
        columns = ["subject", "versions", "id", "type", "level"] + (["removed"] if deleted else [])
        print_table(
            columns,
            [listed_row(row) for row in rows],
            empty="there are no schemas; register one with `ottla schema register SUBJECT FILE`",
        )

    run(bootstrap, url, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla schema show orders-value",
        "ottla schema show orders-value --version 2 --text > orders.avsc",
        "ottla schema show --id 7",
    )
)
def show(
    subject: AnySubject = None,
    version: Annotated[
        str | None, typer.Option("--version", "-v", metavar="NUMBER", help="Which one, or latest. [latest]")
    ] = None,
    schema_id: Annotated[
        int | None, typer.Option("--id", min=0, metavar="NUMBER", help="The schema with this id instead.")
    ] = None,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Even if it was removed, but not for good.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Only its text, as it is registered.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    url: Url = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show a schema: a version of a subject, or the one with an id."""
    from ottla.cli.output import print_facts, print_json
    from ottla.cli.registry import run
    from ottla.cli.running import Misused
    from ottla.cli.schema_output import facts, indented, shown, shown_id

    def command(registry: Registry) -> None:
        if (subject is None) == (schema_id is None):
            raise Misused("name a subject, or an id with --id; one of them")
        if subject is not None:
            found = shown(registry.version(subject, version or "latest", deleted=deleted))
        elif version is not None:
            raise Misused("--version is for a subject; an id is that of one schema")
        else:
            assert schema_id is not None
            found = shown_id(registry, schema_id)
        if text:
            print(found["schema"], end="" if found["schema"].endswith("\n") else "\n")
        elif as_json:
            print_json(found)
        else:
            print_facts(facts(found))
            print()
            print(indented(found["schema"]))

    run(bootstrap, url, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla schema register orders-value order.avsc",
        "ottla schema register orders-value order.proto --reference common.proto=common:1",
        "curl -s https://example.com/order.json | ottla schema register orders-value - --type json",
    )
)
def register(
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    url: Url = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Make a schema the next version of a subject. One that is there already stays as it is."""
    from ottla.cli.output import print_json
    from ottla.cli.registry import run
    from ottla.cli.schema_files import schema_from

    def command(registry: Registry) -> None:
        schema = schema_from(file, kind, references or ())
        is_new = registry.look_up(subject, schema) is None
        schema_id = registry.register(subject, schema)
        made = registry.look_up(subject, schema)
        version = None if made is None else made.version  # somebody may have removed it since
        if as_json:
            said = {"subject": subject, "version": version, "id": schema_id, "type": schema.type.value}
            print_json({**said, "registered": is_new})
        else:
            what = f"{subject} version {version or '-'}, id {schema_id} ({schema.type.value})"
            print(f"registered {what}" if is_new else f"{what} was there already")

    run(bootstrap, url, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla schema check orders-value order.avsc",
        "ottla schema check orders-value order.avsc --json | jq -r '.problems[]'",
    )
)
def check(
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    url: Url = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Say whether a schema would be taken; exits with 1 if not.

    Nothing is registered. It is compared with the versions that the compatibility level of the subject says.
    """
    from ottla.cli.output import print_json
    from ottla.cli.registry import run
    from ottla.cli.running import FAILED
    from ottla.cli.schema_files import schema_from

    def command(registry: Registry) -> None:
        schema = schema_from(file, kind, references or ())
        level = registry.level(subject)
        accepted, problems = registry.check(subject, schema)
        if as_json:
            print_json({"subject": subject, "accepted": accepted, "level": level, "problems": problems})
        elif accepted:
            print(f"{subject} would take it ({level})")
        else:
            print(f"{subject} would not take it ({level})" + (":" if problems else ""))
            for problem in problems:
                print(f"  {' '.join(problem.split())}")
        if not accepted:
            raise typer.Exit(FAILED)

    run(bootstrap, url, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla schema remove orders-value",
        "ottla schema remove orders-value --version 2",
        "ottla schema remove orders-value --permanent --yes",
    )
)
def remove(
    subject: Subject,
    version: Annotated[
        str | None, typer.Option("--version", "-v", metavar="NUMBER", help="Only this one, or latest.")
    ] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="For good: what was written with it is not read any more.")
    ] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    url: Url = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Remove a subject, or a version of it. Asks first on a terminal.

    What was written with it is still read, by its id, until it is removed with --permanent.
    """
    from ottla.cli.asking import confirm
    from ottla.cli.output import print_json
    from ottla.cli.registry import run
    from ottla.cli.schema_output import in_words
    from ottla.cli.schema_removal import removed

    def command(registry: Registry) -> None:
        what = subject if version is None else f"version {version} of {subject}"
        for_good = " for good" if permanent else ""
        confirm(f"Remove {what}{for_good}?", yes)
        gone = removed(registry, subject, version, permanent=permanent)
        if as_json:
            print_json({"subject": subject, "versions": gone, "permanent": permanent})
        else:
            print(f"removed {in_words(gone)} of {subject}{for_good}")

    run(bootstrap, url, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla schema level",
        "ottla schema level orders-value --set FULL_TRANSITIVE",
        "ottla schema level orders-value --reset",
    )
)
def level(
    subject: AnySubject = None,
    wanted: Annotated[
        Level | None,
        typer.Option("--set", case_sensitive=False, help="Set this one."),
    ] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Back to that of all, and for all to BACKWARD.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    url: Url = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show or set a compatibility level.

    It is that of a subject, or else of all subjects that have none of their own.

    BACKWARD: the new schema reads what the latest one wrote. FORWARD: the latest one reads what the new one
    writes. FULL: both. _TRANSITIVE: with every version, not only the latest. NONE: nothing is compared.
    """
    from ottla.cli.output import print_json
    from ottla.cli.registry import run
    from ottla.cli.running import Misused

    def command(registry: Registry) -> None:
        if wanted is not None and reset:
            raise Misused("--set a level, or --reset it; not both")
        own = None if subject is None else registry.own_level(subject)
        if wanted is not None:
            registry.set_level(subject, wanted.value)
        elif reset and (subject is None or own is not None):
            registry.reset_level(subject)
        if subject is not None and (wanted is not None or reset):
            own = registry.own_level(subject)
        found = own or registry.level(subject)
        if as_json:
            print_json({"subject": subject, "level": found, "own": own is not None})
            return
        if own is not None:
            print(f"{subject}: {found}")
        else:
            whose = f"{subject}: {found}, as" if subject is not None else f"{found},"
            print(f"{whose} for all that have none of their own")

    run(bootstrap, url, command, timeout=timeout)
