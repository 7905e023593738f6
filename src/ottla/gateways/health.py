"""`/health`: is this broker alive, does it serve, and what is it still recovering."""

from __future__ import annotations

from typing import Any

from ottla.gateways.pages import Page
from ottla.runtime.node import Node
from ottla.server.doors import Visit


async def live(visit: Visit) -> Page:
    """Whoever can answer is alive."""
    return Page.of_json({"live": True})


async def ready(visit: Visit) -> Page:
    found = state(visit.doors.node)
    return Page.of_json(found, status=200 if found["ready"] else 503)


def state(node: Node) -> dict[str, Any]:
    """What `/health` says. Ready: the controller lets it serve, and it has a disk that works."""
    registration = node.image.brokers.get(node.node_id)
    offline = [directory.path for directory in node.log_directories if directory.error is not None]
    is_ready = (
        registration is not None
        and not registration.fenced
        and not registration.in_controlled_shutdown
        and len(offline) < len(node.log_directories)
    )
    return {
        "live": True,
        "ready": is_ready,
        "node_id": node.node_id,
        "cluster_id": node.cluster_id,
        "recovering": node.recovering,
        "offline_log_dirs": offline,
    }
