"""The settings of a client metrics subscription: which clients push which metrics, how often."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ottla.config.settings import ConfigError, InvalidChange, declared, load, setting, settings

MATCH_KEYS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


@settings
class ClientMetricsSettings:
    """One subscription."""

    metrics: tuple[str, ...] = setting((), about="Prefixes of the metrics to push; * for all.")
    interval_ms: int = setting(300_000, about="How often to push them, from 100 ms to one hour.")
    match: tuple[str, ...] = setting((), about="Which clients, as key=pattern; all must fit.")


def check_client_metrics_configs(configs: Mapping[str, str]) -> ClientMetricsSettings:
    """The settings of a subscription. Raises ConfigError with Apache Kafka's messages."""
    for name in configs:
        if name not in declared(ClientMetricsSettings):
            raise InvalidChange(f"Unknown client metrics configuration: {name}")
    subscription = load(ClientMetricsSettings, configs)
    if not 100 <= subscription.interval_ms <= 3_600_000:
        raise InvalidChange(
            f"Invalid value {subscription.interval_ms} for interval.ms, "
            "interval must be between 100 and 3600000 (1 hour)"
        )
    for pattern in subscription.match:
        key, equals, expression = pattern.partition("=")
        if not equals or key.strip() not in MATCH_KEYS or not _is_pattern(expression.strip()):
            raise ConfigError(f"Illegal client matching pattern: {pattern}")
    return subscription


def _is_pattern(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True
