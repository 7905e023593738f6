"""The controllers that a new cluster begins with: `ottla format --standalone` and `--initial-controllers`."""

from __future__ import annotations

import re
from typing import Final

from ottla.cli.running import Refused
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import Listeners
from ottla.core.ids import Uuid
from ottla.raft.membership import Address, VoterKey

_VOTER: Final = re.compile(
    r"(?P<id>\d{1,9})@(?P<host>[^@]+):(?P<port>\d{1,5}):(?P<directory>[\w-]{22})", re.ASCII
)


def first_voters(
    settings: BrokerSettings, fresh: Uuid, standalone: bool, initial_controllers: str | None
) -> dict[VoterKey, Address]:
    """The voters that the log begins with. None of them: they are configured, or learnt from the others.

    `fresh` is the id of this node's directory if nobody has given it one.
    """
    if not standalone and initial_controllers is None:
        return {}
    if standalone and initial_controllers is not None:
        raise Refused("--standalone and --initial-controllers: it is one or the other")
    if settings.controller_quorum_voters:
        raise Refused("controller.quorum.voters says who votes; leave it out, or --initial-controllers")
    mine = Listeners.parse(settings).controllers
    if not mine:
        raise Refused("only a controller with a listener can be one of the first voters")
    name = mine[0].name
    if initial_controllers is None:
        key = VoterKey(settings.node_id, fresh)
        at = Listeners.parse(settings).advertised.get(name, mine[0])
        return {key: Address(name, at.host or "localhost", at.port)}
    found = _parse(initial_controllers, name)
    if settings.node_id not in {each.id for each in found}:
        raise Refused(f"--initial-controllers does not name this node, which is {settings.node_id}")
    return found


def _parse(text: str, listener: str) -> dict[VoterKey, Address]:
    found: dict[VoterKey, Address] = {}
    for each in text.split(","):
        match = _VOTER.fullmatch(each.strip())
        if match is None:
            raise Refused(
                f"--initial-controllers: {each.strip()} should look like 1@host:9093:5L6g3nShT-eMCtK--X86sw"
            )
        key = VoterKey(int(match["id"]), Uuid.parse(match["directory"]))
        if key.id in {voter.id for voter in found}:
            raise Refused(f"--initial-controllers names node {key.id} twice")
        found[key] = Address(listener, match["host"].strip("[]"), int(match["port"]))
    return found
