from __future__ import annotations

from typing import Any

import pytest

from ottla.metadata.image import BROKER_RESOURCE
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.protocol.stored.metadata import ConfigRecord, FeatureLevelRecord

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
INVALID_UPDATE_VERSION = 95


def update(cluster: Any, name: str, level: int, kind: int = UPGRADE, version: int = 2, **given: Any) -> Any:
    key = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return cluster.do(UpdateFeaturesRequest(feature_updates=[key], **given), version=version)


def test_a_feature_is_raised_and_lowered(cluster: Any) -> None:
    assert update(cluster, "transaction.version", 1, SAFE_DOWNGRADE).error_code == 0
    assert cluster.last == [FeatureLevelRecord(name="transaction.version", feature_level=1)]
    answer = update(cluster, "transaction.version", 2)
    assert (answer.error_code, answer.error_message, answer.results) == (0, None, [])
    update(cluster, "group.version", 0, SAFE_DOWNGRADE)
    assert "group.version" not in cluster.image.features


def test_old_versions_get_a_result_per_feature(cluster: Any) -> None:
    answer = update(cluster, "transaction.version", 2, version=1)
    assert [(result.feature, result.error_code) for result in answer.results] == [("transaction.version", 0)]
    lowered = FeatureUpdateKey(feature="transaction.version", max_version_level=1, allow_downgrade=True)
    assert cluster.do(UpdateFeaturesRequest(feature_updates=[lowered]), version=0).error_code == 0


def test_validating_only_writes_nothing(cluster: Any) -> None:
    assert update(cluster, "transaction.version", 1, SAFE_DOWNGRADE, validate_only=True).error_code == 0
    assert cluster.last == []


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("transaction.version", 1, UPGRADE),
        ("transaction.version", 3, UPGRADE),
        ("transaction.version", -1, SAFE_DOWNGRADE),
        ("transaction.version", 2, 9),
        ("no.such.feature", 1, UPGRADE),
        ("no.such.feature", 0, UPGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 6, SAFE_DOWNGRADE),
        ("kraft.version", 0, SAFE_DOWNGRADE),
    ],
)
def test_what_the_cluster_cannot_do_is_refused(cluster: Any, name: str, level: int, kind: int) -> None:
    answer = update(cluster, name, level, kind)
    assert answer.error_code == INVALID_UPDATE_VERSION
    assert answer.error_message.startswith("The update failed for all features")
    assert cluster.last == []


def test_one_feature_that_is_refused_holds_up_the_others(cluster: Any) -> None:
    keys = [
        FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE),
        FeatureUpdateKey(feature="share.version", max_version_level=9),
    ]
    assert cluster.do(UpdateFeaturesRequest(feature_updates=keys)).error_code == INVALID_UPDATE_VERSION
    assert cluster.last == []


def test_metadata_version_steps_back_where_no_level_brought_new_records(make_cluster: Any) -> None:
    cluster = make_cluster(level=29)
    assert update(cluster, "metadata.version", 23, SAFE_DOWNGRADE).error_code == 0
    assert update(cluster, "metadata.version", 22, SAFE_DOWNGRADE).error_code == INVALID_UPDATE_VERSION
    assert update(cluster, "metadata.version", 30).error_code == 0
    assert cluster.image.metadata_version == 30


def test_eligible_replicas_come_with_one_min_isr_for_all(make_cluster: Any) -> None:
    cluster = make_cluster(level=30, min_insync_replicas=2)
    cluster.apply([ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="3")])

    assert update(cluster, "eligible.leader.replicas.version", 1).error_code == 0

    assert cluster.image.config(BROKER_RESOURCE, "") == {"min.insync.replicas": "2"}
    assert cluster.image.config(BROKER_RESOURCE, "1") == {}
    assert cluster.image.elr_enabled


def test_eligible_replicas_need_a_metadata_version_that_can_write_them_down(make_cluster: Any) -> None:
    cluster = make_cluster(level=22)
    assert update(cluster, "eligible.leader.replicas.version", 1).error_code == INVALID_UPDATE_VERSION
    keys = [
        FeatureUpdateKey(feature="eligible.leader.replicas.version", max_version_level=1),
        FeatureUpdateKey(feature="metadata.version", max_version_level=23),
    ]
    assert cluster.do(UpdateFeaturesRequest(feature_updates=keys)).error_code == 0


def test_every_broker_has_to_support_it(cluster: Any) -> None:
    from ottla.protocol.messages.broker_registration import Feature

    supported = [
        Feature(name=name, max_supported_version=2 if name != "metadata.version" else 30)
        for name in cluster.image.features
    ]
    old = [each for each in supported if each.name != "group.version"]
    update(cluster, "group.version", 0, SAFE_DOWNGRADE)
    assert cluster.register(4, features=old).error_code == 0
    answer = update(cluster, "group.version", 1)
    assert answer.error_code == INVALID_UPDATE_VERSION
    assert "Broker 4 does not support this feature." in answer.error_message
