"""Kafka's error codes, each one an exception that may be raised anywhere below a handler.

The handler turns it into its code at the smallest part that it concerns: a partition, a topic, the request.
The first line of a class's docstring is the message that clients see unless the raiser gives another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

NONE = 0


class KafkaError(Exception):
    """The server failed in a way it did not expect."""

    code: ClassVar[int] = -1
    name: ClassVar[str] = "UNKNOWN_SERVER_ERROR"
    retriable: ClassVar[bool] = False

    def __init_subclass__(cls, code: int, retriable: bool = False, name: str = "") -> None:
        cls.code, cls.retriable = code, retriable
        cls.name = name or _kafka_name(cls.__name__)
        _BY_CODE[code] = cls

    def __str__(self) -> str:
        return super().__str__() or (type(self).__doc__ or "").partition("\n")[0]


_BY_CODE: dict[int, type[KafkaError]] = {}


def _kafka_name(class_name: str) -> str:
    words = "".join(f"_{c}" if c.isupper() else c for c in class_name)
    return words[1:].upper()


def error_class(code: int) -> type[KafkaError]:
    """The exception of a code; a code that we do not know is an unknown server error, as clients take it."""
    return _BY_CODE.get(code, UnknownServerError)


def error_name(code: int) -> str:
    """Kafka's name of a code, for people."""
    return "NONE" if code == NONE else error_class(code).name


class _RecordsRefused(Exception):
    """Mixed into the errors that say which records of a batch are to blame (KIP-467)."""

    def __init__(self, message: str = "", record_errors: Iterable[tuple[int, str | None]] = ()) -> None:
        super().__init__(*((message,) if message else ()))
        self.record_errors = list(record_errors)


class UnknownServerError(KafkaError, code=-1):
    """The server failed in a way it did not expect."""


class OffsetOutOfRange(KafkaError, code=1):
    """The offset is not one that this partition holds."""


class CorruptMessage(KafkaError, code=2, retriable=True):
    """The records fail their checksum, have a bad size, or are otherwise damaged."""


class UnknownTopicOrPartition(KafkaError, code=3, retriable=True):
    """This server does not host this topic-partition."""


class InvalidFetchSize(KafkaError, code=4):
    """The fetch size is invalid."""


class LeaderNotAvailable(KafkaError, code=5, retriable=True):
    """The partition has no leader at the moment, as an election is under way."""


class NotLeaderOrFollower(KafkaError, code=6, retriable=True):
    """This broker is not the leader of the partition, or not a replica that may serve it."""


class RequestTimedOut(KafkaError, code=7, retriable=True):
    """The request did not finish in the time it was given."""


class BrokerNotAvailable(KafkaError, code=8):
    """The broker is not available."""


class ReplicaNotAvailable(KafkaError, code=9, retriable=True):
    """The replica is not available for this topic-partition."""


class MessageTooLarge(KafkaError, code=10):
    """The request holds a batch larger than the server accepts."""


class StaleControllerEpoch(KafkaError, code=11):
    """The controller has moved to another broker."""


class OffsetMetadataTooLarge(KafkaError, code=12):
    """The metadata of the committed offset is too large."""


class NetworkException(KafkaError, code=13, retriable=True):
    """The server closed the connection before a reply was received."""


class CoordinatorLoadInProgress(KafkaError, code=14, retriable=True):
    """The coordinator is still loading its state."""


class CoordinatorNotAvailable(KafkaError, code=15, retriable=True):
    """The coordinator is not available."""


class NotCoordinator(KafkaError, code=16, retriable=True):
    """This broker is not the coordinator."""


class InvalidTopic(KafkaError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    """The topic cannot be used: its name is illegal, or it is internal."""


class RecordListTooLarge(KafkaError, code=18):
    """The batch is larger than a segment may be."""


class NotEnoughReplicas(KafkaError, code=19, retriable=True):
    """Fewer replicas are in sync than the topic requires, so nothing was written."""


class NotEnoughReplicasAfterAppend(KafkaError, code=20, retriable=True):
    """The records were written, but to fewer in-sync replicas than the topic requires."""


class InvalidRequiredAcks(KafkaError, code=21):
    """The required acks must be -1, 0 or 1."""


class IllegalGeneration(KafkaError, code=22):
    """The group has moved on to another generation."""


class InconsistentGroupProtocol(KafkaError, code=23):
    """The member shares no protocol, or not the protocol type, with the rest of the group."""


class InvalidGroupId(KafkaError, code=24):
    """The group id is invalid."""


class UnknownMemberId(KafkaError, code=25):
    """The coordinator does not know this member."""


class InvalidSessionTimeout(KafkaError, code=26):
    """The session timeout is outside the range that the broker allows."""


class RebalanceInProgress(KafkaError, code=27):
    """The group is rebalancing, so the member has to rejoin."""


class InvalidCommitOffsetSize(KafkaError, code=28):
    """The committed offset is too large to store."""


class TopicAuthorizationFailed(KafkaError, code=29):
    """Not authorized to access this topic."""


class GroupAuthorizationFailed(KafkaError, code=30):
    """Not authorized to access this group."""


class ClusterAuthorizationFailed(KafkaError, code=31):
    """Not authorized for this operation on the cluster."""


class InvalidTimestamp(_RecordsRefused, KafkaError, code=32):
    """A record's timestamp is outside the range that the topic accepts."""


class UnsupportedSaslMechanism(KafkaError, code=33):
    """The broker does not offer this SASL mechanism."""


class IllegalSaslState(KafkaError, code=34):
    """The request is not valid in the connection's present SASL state."""


class UnsupportedVersion(KafkaError, code=35):
    """This version of the API is not supported."""


class TopicAlreadyExists(KafkaError, code=36):
    """A topic with this name already exists."""


class InvalidPartitions(KafkaError, code=37):
    """The number of partitions is invalid."""


class InvalidReplicationFactor(KafkaError, code=38):
    """The replication factor is below one or above the number of usable brokers."""


class InvalidReplicaAssignment(KafkaError, code=39):
    """The replica assignment is invalid."""


class InvalidConfig(KafkaError, code=40):
    """A configuration is invalid."""


class NotController(KafkaError, code=41, retriable=True):
    """This is not the active controller of the cluster."""


class InvalidRequest(KafkaError, code=42):
    """The request is malformed, contradicts itself, or is for another version of the API."""


class UnsupportedForMessageFormat(KafkaError, code=43):
    """The message format of the broker does not support this request."""


class PolicyViolation(KafkaError, code=44):
    """The request violates a policy of the cluster."""


class OutOfOrderSequenceNumber(KafkaError, code=45):
    """The sequence number does not follow the last one of this producer."""


class DuplicateSequenceNumber(KafkaError, code=46):
    """This sequence number was written before."""


class InvalidProducerEpoch(KafkaError, code=47):
    """The producer's epoch is older than the one last seen."""


class InvalidTxnState(KafkaError, code=48):
    """The transaction is not in a state that allows this."""


class InvalidProducerIdMapping(KafkaError, code=49):
    """The producer id is not the one that this transactional id holds now."""


class InvalidTransactionTimeout(KafkaError, code=50):
    """The transaction timeout is larger than the broker allows."""


class ConcurrentTransactions(KafkaError, code=51, retriable=True):
    """The producer's previous transaction is still being completed."""


class TransactionCoordinatorFenced(KafkaError, code=52):
    """The coordinator that sent the marker has been replaced by a newer one."""


class TransactionalIdAuthorizationFailed(KafkaError, code=53):
    """Not authorized to use this transactional id."""


class SecurityDisabled(KafkaError, code=54):
    """Security features are disabled."""


class OperationNotAttempted(KafkaError, code=55):
    """The operation was not tried, as another part of the request failed."""


class KafkaStorageError(KafkaError, code=56, retriable=True):
    """The log directory of the partition cannot be read or written."""


class LogDirNotFound(KafkaError, code=57):
    """The log directory is not one of this broker's."""


class SaslAuthenticationFailed(KafkaError, code=58):
    """SASL authentication failed."""


class UnknownProducerId(KafkaError, code=59):
    """The broker no longer has any state of this producer."""


class ReassignmentInProgress(KafkaError, code=60):
    """The partitions are already being reassigned."""


class DelegationTokenAuthDisabled(KafkaError, code=61):
    """Delegation tokens are not enabled."""


class DelegationTokenNotFound(KafkaError, code=62):
    """The server knows no such delegation token."""


class DelegationTokenOwnerMismatch(KafkaError, code=63):
    """The principal is not the owner, nor a renewer, of the delegation token."""


class DelegationTokenRequestNotAllowed(KafkaError, code=64):
    """Delegation tokens may not be requested over this kind of connection."""


class DelegationTokenAuthorizationFailed(KafkaError, code=65):
    """Not authorized to use this delegation token."""


class DelegationTokenExpired(KafkaError, code=66):
    """The delegation token has expired."""


class InvalidPrincipalType(KafkaError, code=67):
    """The principal type is not supported."""


class NonEmptyGroup(KafkaError, code=68):
    """The group still has members."""


class GroupIdNotFound(KafkaError, code=69):
    """The group does not exist."""


class FetchSessionIdNotFound(KafkaError, code=70, retriable=True):
    """The broker does not know this fetch session."""


class InvalidFetchSessionEpoch(KafkaError, code=71, retriable=True):
    """The epoch of the fetch session is not the expected one."""


class ListenerNotFound(KafkaError, code=72, retriable=True):
    """The leader has no listener of the name that the request came in by."""


class TopicDeletionDisabled(KafkaError, code=73):
    """Topic deletion is disabled."""


class FencedLeaderEpoch(KafkaError, code=74, retriable=True):
    """The request's leader epoch is older than the one on the broker."""


class UnknownLeaderEpoch(KafkaError, code=75, retriable=True):
    """The request's leader epoch is newer than the one on the broker."""


class UnsupportedCompressionType(KafkaError, code=76):
    """The client does not support the compression of these records."""


class StaleBrokerEpoch(KafkaError, code=77):
    """The broker's epoch has changed since."""


class OffsetNotAvailable(KafkaError, code=78, retriable=True):
    """The leader's high watermark has not yet caught up after its election."""


class MemberIdRequired(KafkaError, code=79):
    """The member has to join again with the id that it was given."""


class PreferredLeaderNotAvailable(KafkaError, code=80, retriable=True):
    """The preferred leader is not available."""


class GroupMaxSizeReached(KafkaError, code=81):
    """The group has as many members as it may have."""


class FencedInstanceId(KafkaError, code=82):
    """Another member has taken over this group instance id."""


class EligibleLeadersNotAvailable(KafkaError, code=83, retriable=True):
    """No eligible leader of the partition is available."""


class ElectionNotNeeded(KafkaError, code=84, retriable=True):
    """The partition needs no leader election."""


class NoReassignmentInProgress(KafkaError, code=85):
    """The partition is not being reassigned."""


class GroupSubscribedToTopic(KafkaError, code=86):
    """Offsets of a topic cannot be deleted while the group is subscribed to it."""


class InvalidRecord(_RecordsRefused, KafkaError, code=87):
    """A record breaks a rule of the topic or of the protocol."""


class UnstableOffsetCommit(KafkaError, code=88, retriable=True):
    """There are offset commits in an open transaction."""


class ThrottlingQuotaExceeded(KafkaError, code=89, retriable=True):
    """The quota for this kind of change is used up."""


class ProducerFenced(KafkaError, code=90):
    """A newer producer with the same transactional id has fenced this one."""


class ResourceNotFound(KafkaError, code=91):
    """The resource was not found."""


class DuplicateResource(KafkaError, code=92):
    """The request names the same resource twice, or one that exists."""


class UnacceptableCredential(KafkaError, code=93):
    """The credential does not meet the requirements."""


class InconsistentVoterSet(KafkaError, code=94):
    """The sender or the receiver is not in the expected set of voters."""


class InvalidUpdateVersion(KafkaError, code=95):
    """The feature version is invalid."""


class FeatureUpdateFailed(KafkaError, code=96):
    """The features could not be updated."""


class PrincipalDeserializationFailure(KafkaError, code=97):
    """The principal in a forwarded request cannot be read."""


class SnapshotNotFound(KafkaError, code=98):
    """The requested snapshot does not exist."""


class PositionOutOfRange(KafkaError, code=99):
    """The position is outside the snapshot."""


class UnknownTopicId(KafkaError, code=100, retriable=True):
    """This server does not host a topic with this id."""


class DuplicateBrokerRegistration(KafkaError, code=101):
    """This broker id is already in use."""


class BrokerIdNotRegistered(KafkaError, code=102):
    """No broker is registered with this id."""


class InconsistentTopicId(KafkaError, code=103, retriable=True):
    """The topic id in the log does not match the one in the request."""


class InconsistentClusterId(KafkaError, code=104):
    """The cluster id of the request is not that of this cluster."""


class TransactionalIdNotFound(KafkaError, code=105):
    """The transactional id does not exist."""


class FetchSessionTopicIdError(KafkaError, code=106, retriable=True):
    """The fetch session met inconsistent topic ids."""


class IneligibleReplica(KafkaError, code=107):
    """A replica of the proposed in-sync set may not be in it."""


class NewLeaderElected(KafkaError, code=108):
    """The change was applied, and it moved the leadership to another broker."""


class OffsetMovedToTieredStorage(KafkaError, code=109):
    """The offset has moved to tiered storage."""


class FencedMemberEpoch(KafkaError, code=110):
    """The member's epoch is not the one the coordinator expects, so it has to rejoin."""


class UnreleasedInstanceId(KafkaError, code=111):
    """Another member of the group still holds this instance id."""


class UnsupportedAssignor(KafkaError, code=112):
    """The coordinator does not offer this assignor."""


class StaleMemberEpoch(KafkaError, code=113):
    """The member has to learn its new epoch before it tries again."""


class MismatchedEndpointType(KafkaError, code=114):
    """The request was sent to the wrong kind of endpoint."""


class UnsupportedEndpointType(KafkaError, code=115):
    """This kind of endpoint is not known."""


class UnknownControllerId(KafkaError, code=116):
    """The controller id is not known."""


class UnknownSubscriptionId(KafkaError, code=117):
    """The telemetry subscription is not the present one."""


class TelemetryTooLarge(KafkaError, code=118):
    """The client pushed more telemetry than the broker accepts."""


class InvalidRegistration(KafkaError, code=119):
    """The controller finds the registration invalid."""


class TransactionAbortable(KafkaError, code=120):
    """The transaction met an error from which only an abort recovers."""


class InvalidRecordState(KafkaError, code=121):
    """The state of the record does not allow this acknowledgement."""


class ShareSessionNotFound(KafkaError, code=122, retriable=True):
    """The broker does not know this share session."""


class InvalidShareSessionEpoch(KafkaError, code=123, retriable=True):
    """The epoch of the share session is not the expected one."""


class FencedStateEpoch(KafkaError, code=124):
    """The share coordinator holds a newer state epoch."""


class InvalidVoterKey(KafkaError, code=125):
    """The voter's id and directory do not match those of the receiver."""


class DuplicateVoter(KafkaError, code=126):
    """The voter is already in the set of voters."""


class VoterNotFound(KafkaError, code=127):
    """The voter is not in the set of voters."""


class InvalidRegularExpression(KafkaError, code=128):
    """The regular expression is not valid."""


class RebootstrapRequired(KafkaError, code=129):
    """The client's metadata is out of date, so it has to bootstrap again."""


class StreamsInvalidTopology(KafkaError, code=130):
    """The topology is invalid."""


class StreamsInvalidTopologyEpoch(KafkaError, code=131):
    """The topology epoch is invalid."""


class StreamsTopologyFenced(KafkaError, code=132):
    """The topology epoch is not the present one."""


class ShareSessionLimitReached(KafkaError, code=133, retriable=True):
    """The broker holds as many share sessions as it may."""
