"""DescribeUserScramCredentials, key 50, version 0. Answered from this broker's image, without any secret."""

from __future__ import annotations

from collections import Counter

from ottla.core.acl import Operation
from ottla.core.scram import ScramMechanism
from ottla.metadata.image import Image
from ottla.protocol.errors import (
    ClusterAuthorizationFailed,
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ottla.server.context import Context


async def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, ctx: Context
) -> DescribeUserScramCredentialsResponse:
    times = Counter(user.name for user in request.users or ())
    if not ctx.allows_on_cluster(Operation.DESCRIBE):
        error = ClusterAuthorizationFailed()
        return DescribeUserScramCredentialsResponse(
            error_code=error.code,
            error_message=str(error),
            results=[_refused(name, error) for name in times],
        )
    image = ctx.node.image
    # Nobody in particular means everybody.
    names = times or dict.fromkeys(name for _, name in image.scram)
    results = []
    for name in names:
        try:
            if times[name] > 1:
                raise DuplicateResource(
                    f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
                )
            results.append(_described(image, name))
        except KafkaError as refused:
            results.append(_refused(name, refused))
    return DescribeUserScramCredentialsResponse(results=results)


def _described(image: Image, name: str) -> DescribeUserScramCredentialsResult:
    found = [
        CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        for mechanism in ScramMechanism
        if (credential := image.scram.get((mechanism, name))) is not None
    ]
    if not found:
        raise ResourceNotFound(f"Attempt to describe a user credential that does not exist: {name}")
    return DescribeUserScramCredentialsResult(user=name, credential_infos=found)


def _refused(name: str, error: KafkaError) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=error.code, error_message=str(error))
