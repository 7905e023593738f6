"""What to do about an error, in one line, for people who are not a Kafka client."""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import KafkaError

_ADVICE: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": ("There is no such topic or partition", "list topics, or create it first"),
    "OFFSET_OUT_OF_RANGE": ("There is no such offset", "ask which ones there are, or start at the earliest"),
    "TOPIC_ALREADY_EXISTS": ("There is a topic of that name", "use it, or choose another name"),
    "INVALID_TOPIC_EXCEPTION": (
        "No topic can have that name, or it is the broker's own",
        "take letters, digits, dots, dashes and underscores",
    ),
    "INVALID_PARTITIONS": ("There cannot be so many partitions", "ask for one or more"),
    "INVALID_REPLICATION_FACTOR": ("There are not enough brokers for that", "ask for fewer replicas"),
    "INVALID_CONFIG": ("A setting is wrong", "see its name and value"),
    "INVALID_GROUP_ID": ("No group can have that name", "choose another"),
    "MESSAGE_TOO_LARGE": ("The message is too large", "send less, or raise max.message.bytes of the topic"),
    "NOT_LEADER_OR_FOLLOWER": ("Another broker leads this partition", "ask that one"),
    "LEADER_NOT_AVAILABLE": ("The partition has no leader at the moment", "try again"),
    "COORDINATOR_NOT_AVAILABLE": ("The group's coordinator is not ready", "try again"),
    "COORDINATOR_LOAD_IN_PROGRESS": ("The group's coordinator is still loading", "try again"),
    "NOT_COORDINATOR": ("Another broker coordinates this group", "ask that one"),
    "REQUEST_TIMED_OUT": ("It took too long, and may have been done or not", "look before you try again"),
    "NOT_ENOUGH_REPLICAS": ("Too few replicas are in sync", "try again, or lower min.insync.replicas"),
    "TOPIC_AUTHORIZATION_FAILED": (
        "The access rules do not let you do this with the topic",
        "ask for a rule, or come as a user who has one",
    ),
    "GROUP_AUTHORIZATION_FAILED": (
        "The access rules do not let you do this with the group",
        "ask for a rule, or come as a user who has one",
    ),
    "CLUSTER_AUTHORIZATION_FAILED": (
        "The access rules do not let you do this with the cluster",
        "ask for a rule, or come as a user who has one",
    ),
    "KAFKA_STORAGE_ERROR": ("The disk has failed", "see the broker's log"),
    "UNKNOWN_SERVER_ERROR": ("The broker made a mistake", "see its log"),
    "UNKNOWN_MEMBER_ID": ("The group has members, who commit for themselves", "stop them first"),
}


def on(error: KafkaError) -> str:
    """What is wrong, in the error's own words if it was given any, and what to do about it."""
    own = Exception.__str__(error).rstrip(".")
    what, remedy = _ADVICE.get(error.name, ("", ""))
    said = own or what or str(error).rstrip(".")
    # Words that were chosen for the occasion have the remedy after a colon.
    return (said if not remedy or ": " in own else f"{said}: {remedy}").replace("\n", " ")
