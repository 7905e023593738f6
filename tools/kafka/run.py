"""Running one of Kafka's command line tools and reading what it printed."""

from __future__ import annotations

import subprocess

from tools.kafka.distribution import VERSION, command

# The names that are worth remembering; any other class may be given in full.
SHORT_NAMES = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "end-to-end-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "share-consumer-perf": "org.apache.kafka.tools.ShareConsumerPerformance",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}

# Where Kafka 3 had tools that have moved since.
NAMES_IN_3 = {
    "acls": "kafka.admin.AclCommand",
    "api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
}


class ToolFailed(RuntimeError):
    """A tool ended with an exit code other than zero, or not at all."""


def run_tool(
    tool: str,
    *arguments: str,
    stdin: str = "",
    timeout: float = 120.0,
    heap: str = "256m",
    brief: bool = True,
) -> str:
    """Stdout of the tool; its stderr is part of the error when it fails."""
    try:
        done = subprocess.run(
            command(class_of(tool), *arguments, heap=heap, brief=brief),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(f"{tool} {' '.join(arguments)} did not end within {timeout:g} s") from error
    if done.returncode != 0:
        raise ToolFailed(
            f"{tool} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def class_of(tool: str) -> str:
    names = SHORT_NAMES | NAMES_IN_3 if VERSION.startswith("3.") else SHORT_NAMES
    return names.get(tool, tool)
