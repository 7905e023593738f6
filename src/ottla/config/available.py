"""What a property file may ask for and this broker does not have yet.

It is refused: a broker that went on without it would be open where the file has closed it, and nobody would
be told.
"""

from __future__ import annotations

from typing import Final

from ottla.config.broker import BrokerSettings
from ottla.config.settings import ConfigError

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def check_available(settings: BrokerSettings) -> None:
    """Raises ConfigError, with one line that says what to do."""
    authorizer = settings.authorizer_class_name
    if authorizer not in ("", STANDARD_AUTHORIZER):
        raise ConfigError(
            f"authorizer.class.name: plug-ins of Apache Kafka cannot be run, so {authorizer} would refuse "
            f"nothing: the authorizer at hand is {STANDARD_AUTHORIZER}"
        )
    try:
        settings.super_principals  # noqa: B018
    except ValueError as error:
        raise ConfigError(f"super.users: {error}") from None
    for name, policy in (
        ("create.topic.policy.class.name", settings.create_topic_policy_class_name),
        ("alter.config.policy.class.name", settings.alter_config_policy_class_name),
    ):
        if policy:
            raise ConfigError(
                f"{name}: plug-ins of Apache Kafka cannot be run, so {policy} would refuse nothing"
            )
    if settings.remote_log_storage_system_enable:
        raise ConfigError("remote.log.storage.system.enable: there is no tiered storage yet")
