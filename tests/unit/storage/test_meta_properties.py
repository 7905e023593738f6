"""meta.properties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.core.ids import Uuid
from ottla.storage.files import OS_FILES
from ottla.storage.meta_properties import (
    MetaProperties,
    MetaPropertiesError,
    agree,
    format_meta_properties,
    parse_meta_properties,
    read_meta_properties,
    write_meta_properties,
)

DIRECTORY_ID = Uuid.parse("Jf0C_LujQU2U1zwnFyXYjQ")
KAFKAS_OWN = (
    b"#\n#Sun Nov 15 21:19:50 UTC 2026\nnode.id=1\ndirectory.id=Jf0C_LujQU2U1zwnFyXYjQ\n"
    b"version=1\ncluster.id=5L6g3nShT-eMCtK--X86sw\n"
)
META = MetaProperties("5L6g3nShT-eMCtK--X86sw", 1, DIRECTORY_ID)


def ids() -> Callable[[], Uuid]:
    numbers = iter(range(1, 100))
    return lambda: Uuid(bytes([next(numbers)] * 16))


def test_the_text_is_the_one_kafka_writes() -> None:
    assert format_meta_properties(META, 1794777590_000) == KAFKAS_OWN


def test_kafka_s_own_file_reads() -> None:
    assert parse_meta_properties(KAFKAS_OWN) == META


def test_what_was_written_reads_back(tmp_path: Path) -> None:
    assert read_meta_properties(str(tmp_path)) is None
    odd = MetaProperties(" a=b:c#\\ é", 7, DIRECTORY_ID)
    write_meta_properties(OS_FILES, str(tmp_path), odd, 0)
    text = (tmp_path / "meta.properties").read_text()
    assert "cluster.id=\\ a\\=b\\:c\\#\\\\ \\u00E9" in text
    assert text.startswith("#\n#Thu Jan 01 00:00:00 UTC 1970\n")
    # Surrounding blanks are no part of an id.
    assert read_meta_properties(str(tmp_path)) == MetaProperties("a=b:c#\\ é", 7, DIRECTORY_ID)


def test_a_directory_id_may_be_missing() -> None:
    text = b"version=1\ncluster.id=c\nnode.id=3\n"
    assert parse_meta_properties(text) == MetaProperties("c", 3, None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "no version"),
        (b"version=2\ncluster.id=c\nnode.id=1\n", "version '2' is unknown"),
        (b"version=0\ncluster.id=c\nbroker.id=1\n", "ZooKeeper"),
        (b"version=1\nnode.id=1\n", "no cluster.id"),
        (b"version=1\ncluster.id=c\n", "no node.id"),
        (b"version=1\ncluster.id=c\nnode.id=one\n", "node.id is 'one'"),
        (b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=short\n", "directory.id is wrong"),
        (b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "keeps for itself"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(text: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(text)
    with pytest.raises(MetaPropertiesError, match=complaint) as caught:
        read_meta_properties(str(tmp_path))
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_new_directories_get_one_cluster_and_an_id_each() -> None:
    made = agree({"/a": None, "/b": None}, node_id=1, new_id=ids())
    assert made["/a"].cluster_id == made["/b"].cluster_id != ""
    assert made["/a"].directory_id != made["/b"].directory_id


def test_a_new_directory_joins_the_cluster_of_the_others() -> None:
    made = agree({"/new": None, "/old": META}, node_id=1, new_id=ids())
    assert made["/old"] == META
    assert made["/new"].cluster_id == META.cluster_id
    assert made["/new"].directory_id is not None


def test_a_missing_directory_id_is_generated() -> None:
    made = agree({"/old": MetaProperties("c", 1)}, node_id=1, new_id=ids())
    assert made == {"/old": MetaProperties("c", 1, Uuid(b"\x01" * 16))}


def test_a_configured_cluster_is_used_for_a_new_directory_and_checked_against_an_old_one() -> None:
    assert agree({"/a": None}, node_id=1, cluster_id="mine", new_id=ids())["/a"].cluster_id == "mine"
    with pytest.raises(MetaPropertiesError, match="but the configuration to cluster mine"):
        agree({"/old": META}, node_id=1, cluster_id="mine", new_id=ids())


def test_directories_of_two_clusters_do_not_go_together() -> None:
    other = MetaProperties("another", 1, None)
    with pytest.raises(MetaPropertiesError, match="/b belongs to cluster another, but /a to cluster 5L6g"):
        agree({"/a": META, "/b": other}, node_id=1, new_id=ids())


def test_a_directory_of_another_node_is_refused() -> None:
    with pytest.raises(MetaPropertiesError, match=r"/a belongs to node 1, but node\.id is configured as 2"):
        agree({"/a": META}, node_id=2, new_id=ids())


def test_a_copied_directory_is_noticed() -> None:
    with pytest.raises(MetaPropertiesError, match=r"same directory\.id"):
        agree({"/a": META, "/b": META}, node_id=1, new_id=ids())
