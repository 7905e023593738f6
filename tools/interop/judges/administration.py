"""Judges of administration: what the client was told, and what the broker holds afterwards."""

from __future__ import annotations

from tools.interop.judges.evidence import (
    Report,
    asked,
    committed,
    earliest,
    expect,
    group_type,
    partitions_of,
    setting,
    without,
)
from tools.interop.stage import PARTITIONS, Stage

TOPIC_APIS = ("metadata", "describe_topic_partitions")
GROUP_APIS = ("describe_groups", "consumer_group_describe")
ALTER_APIS = ("alter_configs", "incremental_alter_configs")


def saw_topics(stage: Stage, report: Report) -> list[str]:
    name = f"{stage.name}-new"
    problems = asked(stage, "create_topics", "delete_topics", TOPIC_APIS)
    created = [
        (topic.num_partitions, {config.name: config.value for config in topic.configs})
        for said in stage.traffic.of("create_topics")
        for topic in said.request.topics
        if topic.name == name
    ]
    problems += expect("topics as asked for", created, [(3, {"retention.ms": "100000"})])
    problems += expect("partitions", report["partitions"], 3)
    problems += expect("listed", report["listed"], True)
    if not stage.traffic.heard(name, *TOPIC_APIS):
        problems.append("no answer had the topic in it")
    if not without(report, "describing configurations"):
        problems += asked(stage, "describe_configs")
        problems += expect("retention.ms", report["retention"], "100000")
    problems += expect("listed when deleted", report["gone"], True)
    return problems + expect("partitions of the deleted topic", partitions_of(stage, name), 0)


def saw_configs(stage: Stage, report: Report) -> list[str]:
    problems = asked(stage, "describe_configs", ALTER_APIS)
    problems += expect("max.message.bytes before", report["before"], "1048588")
    problems += expect("max.message.bytes set", report["set"], "77777")
    if not stage.traffic.heard("77777", "describe_configs"):
        problems.append("no answer had the changed value in it")
    problems += expect("max.message.bytes reset", report["after"], "1048588")
    return problems + expect("value at the broker", setting(stage, "max.message.bytes"), "1048588")


def saw_partitions(stage: Stage, report: Report) -> list[str]:
    problems = asked(stage, "create_partitions", TOPIC_APIS)
    problems += expect("partitions at the broker", partitions_of(stage, stage.name), 6)
    return problems + expect("partitions", report["partitions"], 6)


def saw_groups(stage: Stage, report: Report) -> list[str]:
    problems = asked(stage, "list_groups", GROUP_APIS)
    if not stage.traffic.heard(stage.name, "list_groups"):
        problems.append("no list had the group in it")
    problems += expect("listed", report["listed"], True)
    problems += expect("state", str(report["state"]).lower(), "empty")
    if without(report, "deleting groups"):
        return problems
    problems += asked(stage, "delete_groups")
    problems += expect("type of the deleted group", group_type(stage), "")
    return problems + expect("listed when deleted", report["gone"], True)


def saw_offsets(stage: Stage, report: Report) -> list[str]:
    problems = asked(stage, "list_offsets", "offset_fetch")
    problems += expect("earliest and latest", [report["earliest"], report["latest"]], [0, 25])
    problems += expect("committed", report["committed"], 5)
    wanted = dict.fromkeys(range(PARTITIONS), 5)
    if not without(report, "altering offsets"):
        problems += asked(stage, "offset_commit")
        problems += expect("altered", report["altered"], 10)
        wanted[0] = 10
    if not without(report, "deleting offsets"):
        problems += asked(stage, "offset_delete")
        problems += expect("deleted", report["deleted"], True)
        del wanted[0]
    return problems + expect("offsets at the broker", committed(stage), wanted)


def saw_deleted_records(stage: Stage, report: Report) -> list[str]:
    problems = asked(stage, "delete_records", "list_offsets")
    problems += expect("earliest offset at the broker", earliest(stage), 10)
    return problems + expect("earliest offset", report["earliest"], 10)
