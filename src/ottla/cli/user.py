"""`ottla user`: who can log in with a password."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

app = new_app("user", "Show, add and remove users who log in with a password (SCRAM).")


class Mechanism(StrEnum):
    """How a password is proved."""

    sha_256 = "SCRAM-SHA-256"
    sha_512 = "SCRAM-SHA-512"


@app.command("list", epilog=examples("ottla user list", "ottla user list --json | jq -r '.[].user'"))
def list_(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List the users, and how their passwords are proved."""
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import run
    from ottla.client import user_admin

    async def command(cluster: Cluster) -> None:
        users = await user_admin.list_users(cluster)
        rows = [
            (user.name, mechanism.sasl_name, iterations)
            for user in users
            for mechanism, iterations in sorted(user.iterations.items())
        ]
        if as_json:
            print_json([dict(zip(("user", "mechanism", "iterations"), row, strict=True)) for row in rows])
        else:
            print_table(
                ["user", "mechanism", "iterations"],
                rows,
                empty="there are no users; add one with `ottla user add NAME`",
            )

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples(
        "ottla user add alice",
        "ottla user add alice --password-file alice.secret",
        "pass show kafka/alice | ottla user add alice --mechanism SCRAM-SHA-512",
    )
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user.", show_default=False)],
    mechanism: Annotated[
        Mechanism, typer.Option("--mechanism", "-m", help="How the password is to be proved.")
    ] = Mechanism.sha_256,
    password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the password from the first line of a file.")
    ] = None,
    iterations: Annotated[
        int, typer.Option(min=4096, max=16384, help="How costly it is to guess, and to log in.")
    ] = 4096,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Add a user, or give one another password.

    The password is asked for on a terminal, and else read from the standard input. It does not leave this
    process: what is sent is a salted hash of it. What the user may do is for `ottla acl add` to say.
    """
    from ottla.cli.output import print_json
    from ottla.cli.passwords import password_from
    from ottla.cli.running import Misused, run
    from ottla.client import user_admin
    from ottla.core.scram import BY_NAME

    async def command(cluster: Cluster) -> None:
        if not name:
            raise Misused("a user needs a name")
        password = password_from(name, password_file)
        wanted = BY_NAME[mechanism.value]
        known = {each.name: each for each in await user_admin.list_users(cluster, [name])}
        is_new = name not in known or wanted not in known[name].iterations
        await user_admin.set_password(cluster, name, password, wanted, iterations)
        if as_json:
            shown = {"user": name, "mechanism": mechanism.value, "iterations": iterations, "added": is_new}
            print_json(shown)
        else:
            done = f"added user {name}" if is_new else f"changed the password of user {name}"
            print(f"{done} ({mechanism.value})")

    run(bootstrap, command, timeout=timeout)


@app.command(
    epilog=examples("ottla user remove alice", "ottla user remove alice bob --mechanism SCRAM-SHA-256 --yes")
)
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The users.", show_default=False)],
    mechanism: Annotated[
        Mechanism | None, typer.Option("--mechanism", "-m", help="Only this; else all that the user has.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Remove users: they cannot log in any more. Asks first on a terminal.

    One that cannot be removed does not keep the others from it. Access rules stay as they are.
    """
    from ottla.cli.asking import confirm
    from ottla.cli.output import print_json
    from ottla.cli.running import FAILED, complain, run
    from ottla.client import user_admin
    from ottla.core.scram import BY_NAME
    from ottla.protocol.errors import KafkaError, ResourceNotFound

    async def command(cluster: Cluster) -> None:
        wanted = list(dict.fromkeys(names))
        known = {each.name: each for each in await user_admin.list_users(cluster, wanted)}
        confirm(f"Remove {', '.join(wanted)}?", yes)
        done: list[dict[str, Any]] = []
        for name in wanted:
            had = list(known[name].iterations) if name in known else []
            gone = [each for each in had if mechanism is None or each == BY_NAME[mechanism.value]]
            try:
                if not gone:
                    raise ResourceNotFound(f"there is no user {name} to remove")
                for each in gone:
                    await user_admin.remove_password(cluster, name, each)
            except KafkaError as error:
                done.append({"user": name, "removed": False, "error": complain(error)})
                continue
            done.append({"user": name, "removed": True})
            if not as_json:
                print(f"removed user {name}")
        if as_json:
            print_json(done)
        if not all(each["removed"] for each in done):
            raise typer.Exit(FAILED)

    run(bootstrap, command, timeout=timeout)
