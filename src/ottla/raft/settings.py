"""What the quorum has to know beforehand: its timeouts, and where to find the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.config.areas.quorum import QuorumSettings
from ottla.raft.membership import Address

# How long a fetch may wait at the leader for something new; Kafka has no property for it either.
FETCH_MAX_WAIT_MS: Final = 500
# A follower whose leader has nothing to say has to hear that well before it takes it for dead.
FETCHES_PER_TIMEOUT: Final = 4


class RaftSettings(NamedTuple):
    """Kafka's defaults of `controller.quorum.*`, and the addresses of the quorum."""

    election_timeout_ms: int = 1_000
    election_backoff_max_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    fetch_max_wait_ms: int = FETCH_MAX_WAIT_MS
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    # The voters of a fixed quorum (kraft.version 0) by id; empty if the log has them.
    voters: tuple[tuple[int, Address], ...] = ()
    # Where to ask for the leader when nobody knows it.
    bootstrap_servers: tuple[Address, ...] = ()
    # Our own controller listeners as the others reach them; empty on a node that is no controller.
    endpoints: tuple[Address, ...] = ()

    @classmethod
    def of(cls, settings: QuorumSettings, endpoints: Sequence[Address] = ()) -> RaftSettings:
        """As the properties say. `endpoints` are the advertised addresses of our controller listeners."""
        name = next(iter(settings.controller_listener_names), "")
        voters = []
        for voter in settings.controller_quorum_voters:
            id, _, server = voter.partition("@")
            voters.append((int(id), _address(name, server)))
        return cls(
            election_timeout_ms=settings.controller_quorum_election_timeout_ms,
            election_backoff_max_ms=settings.controller_quorum_election_backoff_max_ms,
            fetch_timeout_ms=settings.controller_quorum_fetch_timeout_ms,
            fetch_max_wait_ms=min(
                FETCH_MAX_WAIT_MS, settings.controller_quorum_fetch_timeout_ms // FETCHES_PER_TIMEOUT
            ),
            fetch_max_bytes=settings.controller_quorum_fetch_max_bytes,
            fetch_snapshot_max_bytes=settings.controller_quorum_fetch_snapshot_max_bytes,
            request_timeout_ms=settings.controller_quorum_request_timeout_ms,
            retry_backoff_ms=settings.controller_quorum_retry_backoff_ms,
            voters=tuple(voters),
            bootstrap_servers=tuple(
                _address(name, server) for server in settings.controller_quorum_bootstrap_servers
            ),
            endpoints=tuple(endpoints),
        )


def _address(name: str, server: str) -> Address:
    host, _, port = server.rpartition(":")
    return Address(name, host.removeprefix("[").removesuffix("]"), int(port))
