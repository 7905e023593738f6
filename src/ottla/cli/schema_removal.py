"""Removing a subject or a version of it, which a registry does in two steps when it is for good."""

from __future__ import annotations

from typing import Final

from ottla.client.registry_exchange import RegistryRefused
from ottla.client.schema_registry import Registry

SUBJECT_SOFT_DELETED: Final = 40404
VERSION_SOFT_DELETED: Final = 40406


def removed(registry: Registry, subject: str, version: str | None, *, permanent: bool) -> list[int]:
    """The versions that are gone, after the last step that was asked for."""
    gone: list[int] = []
    try:
        if version is None:
            gone = registry.remove_subject(subject)
        else:
            gone = [registry.remove_version(subject, version)]
    except RegistryRefused as error:
        if not permanent or error.code not in (SUBJECT_SOFT_DELETED, VERSION_SOFT_DELETED):
            raise
    if not permanent:
        return gone
    try:
        if version is None:
            return registry.remove_subject(subject, permanent=True)
        # By its number: `latest` is another one by now.
        number = str(gone[0]) if gone else version
        return [registry.remove_version(subject, number, permanent=True)]
    except RegistryRefused as error:
        if not gone:
            raise
        raise RegistryRefused(
            error.code, f"{error.message.rstrip('. ')}; it is removed, but not for good"
        ) from None
