"""`ottla format`: say which cluster and node directories belong to, before a node is first started on them.

A node alone needs none of this. Nodes of one cluster have to name the same cluster, and as none of them can
decide that for the others, somebody says it to each: as with Kafka's storage tool, whose file this writes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.options import examples

EPILOG = examples(
    "ottla format --config node-1.properties",
    "ottla format --config node-2.properties --cluster-id 5L6g3nShT-eMCtK--X86sw",
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
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", help="Directories that belong to it already are no error.")
    ] = False,
) -> None:
    """Prepare the directories of one node of a cluster of several. Run it once for each node."""
    from ottla.cli.given import Given, properties
    from ottla.cli.running import Refused, guarded
    from ottla.config.broker import broker_settings
    from ottla.storage.meta_properties import read_meta_properties

    def command() -> None:
        given = Given(config=config, assignments=tuple(assignments or ()), data_dir=data_dir)
        found = properties(given, os.environ)
        settings = broker_settings(found)
        wanted = cluster_id or new_id()
        directories = list(settings.data_dirs)
        metadata = found.get("metadata.log.dir", "").strip()
        if metadata and metadata not in directories:
            directories.append(metadata)
        for directory in directories:
            before = read_meta_properties(directory)
            if before is None:
                claim(Path(directory), settings.node_id, wanted)
                print(f"{directory}: node {settings.node_id} of cluster {wanted}")
            elif not ignore_formatted or (before.cluster_id, before.node_id) != (wanted, settings.node_id):
                raise Refused(
                    f"{directory} belongs to node {before.node_id} of cluster {before.cluster_id} already"
                )
        if cluster_id is None:
            print(f"for the other nodes: ottla format --cluster-id {wanted} --config FILE")

    guarded(command)


def claim(directory: Path, node_id: int, cluster_id: str) -> None:
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
        meta = MetaProperties(cluster_id, node_id, Uuid.parse(new_id()))
        (directory / META_PROPERTIES).write_bytes(format_meta_properties(meta, round(time.time() * 1000)))


def new_id() -> str:
    from ottla.core.ids import Uuid

    while not (found := Uuid.from_random(os.urandom(16))).is_usable:
        pass
    return str(found)
