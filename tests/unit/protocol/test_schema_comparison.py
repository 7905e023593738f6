"""`make schemas` has to notice each way in which a declaration can differ from Kafka's definition."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import compare_schemas, show_codec

# HeartbeatRequest the way Kafka defines it, comments and all.
DEFINITION = """
// A comment before the definition.
{
  "apiKey": 12,
  "type": "request",
  "listeners": ["broker"],
  "name": "HeartbeatRequest",
  // Version 4 is the first flexible version.
  "validVersions": "0-4",
  "flexibleVersions": "4+",
  "fields": [
    { "name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId" },
    { "name": "GenerationId", "type": "int32", "versions": "0+" },
    { "name": "MemberId", "type": "string", "versions": "0+" },
    { "name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+",
      "default": "null" }
  ]
}
"""


def heartbeat(folder: Path, change: Callable[[dict[str, Any]], Any]) -> list[str]:
    """The differences that are found in HeartbeatRequest once its definition is changed like this."""
    path = folder / "HeartbeatRequest.json"
    path.write_text(DEFINITION)
    definition = compare_schemas.load(path)
    change(definition)
    found = compare_schemas.compare_all([definition])
    return [line for line in found if line.startswith("HeartbeatRequest")]


def test_an_equal_definition_has_no_differences(tmp_path: Path) -> None:
    assert heartbeat(tmp_path, lambda d: None) == []


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda d: d.update(validVersions="0-5"), "HeartbeatRequest: versions 0-4, Kafka has 0-5"),
        (lambda d: d.update(validVersions="0-3"), "HeartbeatRequest: versions 0-4, Kafka has 0-3"),
        (lambda d: d.update(flexibleVersions="3+"), "HeartbeatRequest: flexible 4+, Kafka has 3+"),
        (lambda d: d.update(latestVersionUnstable=True), "HeartbeatRequest: latest version unstable False"),
        (
            lambda d: d["fields"][1].update(type="int64"),
            "HeartbeatRequest.generation_id: type i, Kafka has int64",
        ),
        (lambda d: d["fields"][1].update(type="[]int32"), "HeartbeatRequest.generation_id: type i"),
        (
            lambda d: d["fields"][1].update(default="-1"),
            "HeartbeatRequest.generation_id: default 0, Kafka has -1",
        ),
        (lambda d: d["fields"][3].update(versions="2+"), "HeartbeatRequest.group_instance_id: versions 3+"),
        (lambda d: d["fields"][3].pop("nullableVersions"), "HeartbeatRequest.group_instance_id: nullable 3+"),
        (
            lambda d: d["fields"][3].update(nullableVersions="4+"),
            "HeartbeatRequest.group_instance_id: nullable",
        ),
        (
            lambda d: d["fields"][3].update(ignorable=True),
            "HeartbeatRequest.group_instance_id: ignorable False",
        ),
        (lambda d: d["fields"][3].pop("default"), "HeartbeatRequest.group_instance_id: default None"),
        (
            lambda d: d["fields"][3].update(tag=0, taggedVersions="4+"),
            "HeartbeatRequest.group_instance_id: tag None",
        ),
        (lambda d: d["fields"].pop(1), "HeartbeatRequest.generation_id: versions 0+, Kafka does not have it"),
        (
            lambda d: d["fields"].append({"name": "Reason", "type": "string", "versions": "4+"}),
            "HeartbeatRequest.reason: we do not declare it",
        ),
        (
            lambda d: d["fields"].insert(0, d["fields"].pop(2)),
            "HeartbeatRequest: the order of fields differs",
        ),
    ],
)
def test_a_difference_is_found(tmp_path: Path, change: Callable[[Any], Any], expected: str) -> None:
    found = heartbeat(tmp_path, change)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_versions_that_kafka_has_dropped_are_not_compared(tmp_path: Path) -> None:
    def drop_old_versions(definition: dict[str, Any]) -> None:
        definition["validVersions"] = "3-4"
        definition["fields"][3]["versions"] = "0+"

    assert heartbeat(tmp_path, drop_old_versions) == []


def test_a_definition_that_we_lack_and_a_declaration_that_kafka_lacks_are_found(tmp_path: Path) -> None:
    definition = {
        "name": "TimeTravelRequest",
        "type": "request",
        "apiKey": 500,
        "validVersions": "0",
        "fields": [],
    }
    found = list(compare_schemas.compare_all([definition]))
    assert "TimeTravelRequest: we do not declare it" in found
    assert "HeartbeatRequest: Kafka does not have it" in found


def test_the_outcome_is_printed_and_returned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "HeartbeatRequest.json").write_text(DEFINITION)
    assert compare_schemas.main([str(tmp_path)]) == 1
    assert "1 definitions read" in capsys.readouterr().out
    assert compare_schemas.main([str(tmp_path / "nothing")]) == 2


def test_older_definitions_are_compared_by_older_rules(tmp_path: Path) -> None:
    """A record key used to be versioned by its type, and what was unstable may since have changed."""
    removed = {
        "name": "LeaderAndIsrRequest",
        "type": "request",
        "apiKey": 4,
        "validVersions": "0",
        "fields": [],
    }
    key = {
        "name": "GroupMetadataKey",
        "type": "data",
        "validVersions": "2",
        "flexibleVersions": "none",
        "fields": [{"name": "group", "type": "string", "versions": "2"}],
    }
    unstable = json.loads(json.dumps(key)) | {
        "name": "ShareGroupHeartbeatRequest",
        "type": "request",
        "apiKey": 76,
        "validVersions": "0",
        "latestVersionUnstable": True,
    }
    found = list(compare_schemas.compare_all([removed, key, unstable]))
    assert [line for line in found if not line.startswith("LeaderAndIsrRequest")] == []
    key["fields"][0]["type"] = "int32"  # type: ignore[index]
    found = list(compare_schemas.compare_all([removed, key]))
    assert "GroupMetadataKey.group: type str, Kafka has int32" in found


def test_the_code_of_a_message_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_codec.main(["heartbeat", "4"]) == 0
    shown = capsys.readouterr().out
    assert "# read HeartbeatRequest version 4" in shown
    assert "# write HeartbeatResponse version 4" in shown
    assert show_codec.main(["12"]) == 0
    assert show_codec.main(["heartbeat", "99"]) == 2
    assert show_codec.main(["heartbreak"]) == 2
