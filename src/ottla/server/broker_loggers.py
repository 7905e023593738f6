"""The levels of this process's loggers, which clients read and change as BROKER_LOGGER configs (KIP-412).

Kafka's names for levels are those of log4j. They are not kept: a restart forgets them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.config.alter import Operation
from ottla.protocol.errors import InvalidConfig, InvalidRequest
from ottla.protocol.messages.incremental_alter_configs import AlterableConfig

ROOT: Final = "root"
LEVELS: Final = {
    "TRACE": logging.DEBUG // 2,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


class _Change(NamedTuple):
    logger: logging.Logger
    level: int


def levels() -> dict[str, str]:
    """Every logger there is, with the level that it goes by."""
    known = {ROOT: logging.getLogger()} | {
        name: logger
        for name, logger in sorted(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger)
    }
    return {name: _level_name(logger.getEffectiveLevel()) for name, logger in known.items()}


def alter_levels(configs: Iterable[AlterableConfig], validate_only: bool) -> None:
    """Change levels, all of them or none. Deleting one means to inherit it again."""
    known = levels()
    changes = [_change(config, known) for config in configs]
    if not validate_only:
        for change in changes:
            change.logger.setLevel(change.level)


def _change(config: AlterableConfig, known: dict[str, str]) -> _Change:
    name = config.name
    try:
        operation = Operation(config.config_operation)
    except ValueError:
        raise InvalidRequest(f"Unknown operations type {config.config_operation}") from None
    if operation not in (Operation.SET, Operation.DELETE):
        raise InvalidRequest(f"{operation.name} operation is not allowed for the BROKER_LOGGER resource")
    if name not in known:
        raise InvalidConfig(f"Logger {name} does not exist!")
    if operation is Operation.DELETE:
        if name == ROOT:
            raise InvalidRequest("Removing the log level of the root logger is not allowed")
        level = logging.NOTSET
    elif config.value in LEVELS:
        level = LEVELS[config.value]
    else:
        raise InvalidConfig(
            f"Cannot set the log level of {name} to {config.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}"
        )
    return _Change(logging.getLogger() if name == ROOT else logging.getLogger(name), level)


def _level_name(level: int) -> str:
    """The finest of Kafka's levels that lets through no more than this one."""
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
