"""`ottla format`: say which cluster and node directories belong to, before a node is first started on them.

A node alone needs none of this. Nodes of one cluster have to name the same cluster, and as none of them can
decide that for the others, somebody says it to each: as with Kafka's storage tool, whose file this writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import examples

if TYPE_CHECKING:
    from ottla.core.ids import Uuid
    from ottla.protocol.stored.metadata import UserScramCredentialRecord
    from ottla.raft.membership import Address, VoterKey

EPILOG = examples(
    "ottla format --config node-1.properties",
    "ottla format --config node-2.properties --cluster-id 5L6g3nShT-eMCtK--X86sw",
    "ottla format --config node-1.properties --standalone",
    "ottla format --config node-1.properties --initial-controllers 1@host1:9093:ID1,2@host2:9093:ID2",
)


def format(
    cluster_id: Annotated[
        str | None, typer.Option(metavar="ID", help="The cluster they belong to. [a new one, which is shown]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The property file of the node, as for `ottla serve`.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a property; may be repeated.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="The directory, if no property names it.")] = None,
    standalone: Annotated[
        bool, typer.Option("--standalone", help="The cluster begins with this controller alone.")
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option(
            metavar="VOTERS",
            help="The cluster begins with these, as ID@HOST:PORT:DIRECTORY-ID,...; the same for all of them.",
        ),
    ] = None,
    add_scram: Annotated[
        list[str] | None, typer.Option(metavar="USER", help="Who can log in, as for `ottla serve`.")
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", help="Directories that belong to it already are no error.")
    ] = False,
) -> None:
    """Prepare the directories of one node of a cluster of several. Run it once for each node."""
    from ottla.cli.first_users import first_users
    from ottla.cli.first_voters import first_voters
    from ottla.cli.given import Given, properties
    from ottla.cli.running import Refused, guarded
    from ottla.config.broker import broker_settings
    from ottla.core.ids import Uuid
    from ottla.storage.meta_properties import read_meta_properties

    def command() -> None:
        given = Given(config=config, assignments=tuple(assignments or ()), data_dir=data_dir)
        found = properties(given, os.environ)
        settings = broker_settings(found)
        wanted = cluster_id or new_id()
        voters = first_voters(settings, Uuid.parse(new_id()), standalone, initial_controllers)
        users = first_users(add_scram, os.environ) if add_scram else []
        own = {each.id: each.directory_id for each in voters}.get(settings.node_id)
        new = []
        for directory in dict.fromkeys((*settings.data_dirs, settings.metadata_dir)):
            before = read_meta_properties(directory)
            if before is None:
                new.append(directory)
            elif not ignore_formatted or (before.cluster_id, before.node_id) != (wanted, settings.node_id):
                raise Refused(
                    f"{directory} belongs to node {before.node_id} of cluster {before.cluster_id} already"
                )
        if (voters or users) and settings.metadata_dir in new:
            # Before it is said whose they are: a directory that says so is one that is ready.
            _begin_log(new, settings.metadata_dir, voters, users)
        for directory in new:
            claim(
                Path(directory), settings.node_id, wanted, own if directory == settings.metadata_dir else None
            )
            print(f"{directory}: node {settings.node_id} of cluster {wanted}")
        if cluster_id is None and not standalone:
            print(f"for the other nodes: ottla format --cluster-id {wanted} --config FILE")

    guarded(command)


def claim(directory: Path, node_id: int, cluster_id: str, directory_id: Uuid | None = None) -> None:
    """Say whose the directory is, where nobody has said it yet."""
    from ottla.core.ids import Uuid
    from ottla.storage.meta_properties import (
        META_PROPERTIES,
        MetaProperties,
        format_meta_properties,
        read_meta_properties,
    )

    directory.mkdir(parents=True, exist_ok=True)
    if read_meta_properties(str(directory)) is None:
        meta = MetaProperties(cluster_id, node_id, directory_id or Uuid.parse(new_id()))
        (directory / META_PROPERTIES).write_bytes(format_meta_properties(meta, round(time.time() * 1000)))


def _begin_log(
    directories: Sequence[str],
    metadata: str,
    voters: Mapping[VoterKey, Address],
    users: Sequence[UserScramCredentialRecord],
) -> None:
    from ottla.raft.membership import initial
    from ottla.runtime.metadata_log import format_directories, is_formatted
    from ottla.storage.files import OS_FILES

    for directory in directories:
        Path(directory).mkdir(parents=True, exist_ok=True)
    if not is_formatted(metadata):
        first = initial(dict(voters)) if voters else None
        format_directories(directories, metadata, OS_FILES, first, round(time.time() * 1000), users)


def new_id() -> str:
    from ottla.core.ids import Uuid

    while not (found := Uuid.from_random(os.urandom(16))).is_usable:
        pass
    return str(found)
