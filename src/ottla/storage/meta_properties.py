"""`meta.properties`: which cluster, node and directory a log directory belongs to.

It is Java properties text, as Kafka's own storage tool writes it. Directories of one broker have to agree on
the cluster and the node, and each has an id of its own by which the controller knows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ottla.config.properties import parse_properties
from ottla.core.files import Files
from ottla.core.ids import Uuid
from ottla.storage.files import write_atomically

META_PROPERTIES = "meta.properties"

# Java prints dates in English whatever the locale, so strftime would be wrong on some machines.
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class MetaPropertiesError(Exception):
    """A log directory's identity cannot be read, or contradicts another's or the configuration."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    # Missing from directories formatted before Kafka 3.7; given one on the first start.
    directory_id: Uuid | None = None


def format_meta_properties(meta: MetaProperties, now_ms: int) -> bytes:
    lines = ["#", "#" + java_date(now_ms), f"node.id={meta.node_id}"]
    if meta.directory_id is not None:
        lines.append(f"directory.id={meta.directory_id}")
    lines += ["version=1", f"cluster.id={_escape(meta.cluster_id)}", ""]
    return "\n".join(lines).encode("ascii")


def parse_meta_properties(data: bytes) -> MetaProperties:
    try:
        properties = parse_properties(data.decode("latin-1"))
    except ValueError as error:
        raise MetaPropertiesError(f"it does not read as a properties file: {error}") from None
    version = properties.get("version")
    if version == "0":
        raise MetaPropertiesError("version 0 was written by a Kafka with ZooKeeper; let Kafka 3.9 migrate it")
    if version != "1":
        raise MetaPropertiesError(f"version {version!r} is unknown" if version else "it has no version")
    cluster_id = properties.get("cluster.id", "").strip()
    if not cluster_id:
        raise MetaPropertiesError("it has no cluster.id")
    node_id = properties.get("node.id", "").strip()
    if not (node_id.isascii() and node_id.isdigit()):
        raise MetaPropertiesError(f"node.id is {node_id!r}, not a number" if node_id else "it has no node.id")
    directory_id: Uuid | None = None
    text = properties.get("directory.id", "").strip()
    if text:
        try:
            directory_id = Uuid.parse(text)
        except ValueError as error:
            raise MetaPropertiesError(f"directory.id is wrong: {error}") from None
        if directory_id.is_reserved:
            raise MetaPropertiesError(f"directory.id {text} is one that Kafka keeps for itself")
    return MetaProperties(cluster_id, int(node_id), directory_id)


def read_meta_properties(directory: str) -> MetaProperties | None:
    """The identity of a directory, None when it has none yet. Raises `MetaPropertiesError`."""
    path = Path(directory, META_PROPERTIES)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return parse_meta_properties(data)
    except MetaPropertiesError as error:
        raise MetaPropertiesError(f"{path}: {error}") from None


def write_meta_properties(files: Files, directory: str, meta: MetaProperties, now_ms: int) -> None:
    write_atomically(files, str(Path(directory, META_PROPERTIES)), format_meta_properties(meta, now_ms))


def agree(
    found: Mapping[str, MetaProperties | None],
    *,
    node_id: int,
    cluster_id: str | None = None,
    new_id: Callable[[], Uuid],
) -> dict[str, MetaProperties]:
    """The identity that every directory should have, complete.

    `found` is what was read from each. A directory without identity joins the others; when there is none at
    all, `cluster_id` (or a new one) is used. Raises `MetaPropertiesError` when they cannot belong together.
    """
    seen: dict[Uuid, str] = {}
    origin = "the configuration"
    for directory, meta in found.items():
        if meta is None:
            continue
        if meta.node_id != node_id:
            raise MetaPropertiesError(
                f"{directory} belongs to node {meta.node_id}, but node.id is configured as {node_id}"
            )
        if cluster_id is None:
            cluster_id, origin = meta.cluster_id, directory
        elif meta.cluster_id != cluster_id:
            raise MetaPropertiesError(
                f"{directory} belongs to cluster {meta.cluster_id}, but {origin} to cluster {cluster_id}"
            )
        if meta.directory_id is not None:
            twin = seen.setdefault(meta.directory_id, directory)
            if twin != directory:
                raise MetaPropertiesError(
                    f"{directory} and {twin} have the same directory.id {meta.directory_id}: is one a copy?"
                )
    if cluster_id is None:
        cluster_id = str(new_id())
    complete: dict[str, MetaProperties] = {}
    for directory, meta in found.items():
        meta = meta or MetaProperties(cluster_id, node_id)
        if meta.directory_id is None:
            meta = replace(meta, directory_id=new_id())
        complete[directory] = meta
    return complete


def java_date(now_ms: int) -> str:
    """A moment as Java's `Date.toString` prints it, in UTC: `Sun Nov 15 21:19:50 UTC 2026`."""
    at = time.gmtime(now_ms / 1000)
    return (
        f"{DAYS[at.tm_wday]} {MONTHS[at.tm_mon - 1]} {at.tm_mday:02} "
        f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} UTC {at.tm_year}"
    )


def _escape(value: str) -> str:
    """A value as Java's `Properties.store` writes it."""
    out: list[str] = []
    for position, character in enumerate(value):
        if character in "\\=:#!" or (character == " " and position == 0):
            out.append("\\" + character)
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)
