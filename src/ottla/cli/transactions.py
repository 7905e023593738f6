"""`ottla transactions`: which there are, and what one of them is at."""

from __future__ import annotations

from enum import StrEnum
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

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

app = new_app("transactions", "Show transactions.")


class State(StrEnum):
    """What a transactional id can be at, in Kafka's words."""

    empty = "Empty"
    ongoing = "Ongoing"
    prepare_commit = "PrepareCommit"
    prepare_abort = "PrepareAbort"
    complete_commit = "CompleteCommit"
    complete_abort = "CompleteAbort"
    dead = "Dead"
    prepare_epoch_fence = "PrepareEpochFence"


@app.command(
    "list", epilog=examples("ottla transactions list", "ottla transactions list --state Ongoing --json")
)
def list_(
    states: Annotated[
        list[State] | None,
        typer.Option("--state", case_sensitive=False, help="Only those in this state; may be repeated."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List the transactional ids and the state of each."""
    from ottla.cli.output import print_json, print_table
    from ottla.cli.running import run
    from ottla.client import transaction_admin

    async def command(cluster: Cluster) -> None:
        wanted = [each.value for each in states or ()]
        found = await transaction_admin.list_transactions(cluster, states=wanted)
        if as_json:
            print_json(
                [
                    {
                        "transactional_id": each.transactional_id,
                        "producer_id": each.producer_id,
                        "state": each.transaction_state,
                    }
                    for each in found
                ]
            )
            return
        print_table(
            ["transactional id", "producer id", "state"],
            [[each.transactional_id, each.producer_id, each.transaction_state] for each in found],
            empty="there are no transactions",
        )

    run(bootstrap, command, timeout=timeout)


@app.command(epilog=examples("ottla transactions describe payments-1"))
def describe(
    transactional_id: Annotated[
        str, typer.Argument(metavar="TRANSACTIONAL_ID", help="The transactional id.", show_default=False)
    ],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show one transaction: its producer, since when it is open, and the partitions in it."""
    from ottla.cli.output import print_facts, print_json
    from ottla.cli.running import run
    from ottla.cli.times import iso
    from ottla.client import transaction_admin

    async def command(cluster: Cluster) -> None:
        coordinator, found = await transaction_admin.describe_transaction(cluster, transactional_id)
        partitions = [f"{t.topic}-{number}" for t in found.topics for number in t.partitions]
        started = found.transaction_start_time_ms
        if as_json:
            print_json(
                {
                    "transactional_id": found.transactional_id,
                    "state": found.transaction_state,
                    "coordinator": coordinator,
                    "producer_id": found.producer_id,
                    "producer_epoch": found.producer_epoch,
                    "timeout_ms": found.transaction_timeout_ms,
                    "started": started if started >= 0 else None,
                    "partitions": [
                        {"topic": each.topic, "partition": number}
                        for each in found.topics
                        for number in each.partitions
                    ],
                }
            )
            return
        is_over = found.transaction_state.startswith("Complete")
        print_facts(
            [
                ("transactional id", found.transactional_id),
                ("state", found.transaction_state),
                ("coordinator", f"broker {coordinator}"),
                ("producer", f"{found.producer_id}, epoch {found.producer_epoch}"),
                ("timeout", f"{found.transaction_timeout_ms / 1000:g} s"),
                ("began" if is_over else "open since", iso(started)),
                ("partitions", " ".join(partitions) or None),
            ]
        )

    run(bootstrap, command, timeout=timeout)
