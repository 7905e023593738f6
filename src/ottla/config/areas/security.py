"""Who may connect and what they may do: TLS, authorization, delegation tokens."""

from __future__ import annotations

from ottla.config.settings import Kind, setting, settings


@settings
class SecuritySettings:
    """Who may connect and what they may do: TLS, authorization, delegation tokens."""

    authorizer_class_name: str = setting("", about="What decides who may do what; empty allows everything.")
    principal_builder_class: str = setting(
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        kind=Kind.CLASS,
        live="broker",
        about="How a connection becomes a principal.",
    )
    security_providers: str | None = setting(None, about="Java security providers, for Apache Kafka.")
    delegation_token_secret_key: str | None = setting(
        None, kind=Kind.PASSWORD, about="The secret that signs delegation tokens, the same on every node."
    )
    delegation_token_max_lifetime_ms: int = setting(
        604_800_000, kind=Kind.LONG, at_least=1, about="A delegation token cannot be renewed past this age."
    )
    delegation_token_expiry_time_ms: int = setting(
        86_400_000, kind=Kind.LONG, at_least=1, about="A delegation token lasts this long unless renewed."
    )
    delegation_token_expiry_check_interval_ms: int = setting(
        3_600_000, kind=Kind.LONG, at_least=1, about="How often expired delegation tokens are removed."
    )
    ssl_client_auth: str = setting(
        "none",
        choices=("required", "requested", "none"),
        live="broker",
        about="Whether clients must show a certificate: required, requested or none.",
    )
    ssl_protocol: str = setting("TLSv1.3", live="broker", about="The TLS version preferred.")
    ssl_enabled_protocols: tuple[str, ...] = setting(
        ("TLSv1.2", "TLSv1.3"), live="broker", about="The TLS versions accepted."
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        (), live="broker", about="The cipher suites accepted; empty for all."
    )
    ssl_provider: str | None = setting(None, live="broker", about="A Java TLS provider, for Apache Kafka.")
    ssl_engine_factory_class: str | None = setting(
        None, kind=Kind.CLASS, live="broker", about="A plug-in that makes TLS engines."
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "https",
        live="broker",
        about="How the name in a server's certificate is checked; empty for not at all.",
    )
    ssl_principal_mapping_rules: str = setting(
        "DEFAULT", about="How the name in a client's certificate becomes a principal."
    )
    ssl_secure_random_implementation: str | None = setting(
        None, live="broker", about="The source of random numbers, for Apache Kafka."
    )
    ssl_keymanager_algorithm: str = setting(
        "SunX509", live="broker", about="The Java key manager, for Apache Kafka."
    )
    ssl_trustmanager_algorithm: str = setting(
        "PKIX", live="broker", about="The Java trust manager, for Apache Kafka."
    )
    ssl_keystore_location: str | None = setting(
        None, live="broker", about="The file with this node's key and certificate."
    )
    ssl_keystore_password: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="The password of that file."
    )
    ssl_keystore_type: str = setting(
        "JKS", live="broker", about="The format of that file: PEM, PKCS12 or JKS."
    )
    ssl_keystore_key: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="This node's private key, as PEM text."
    )
    ssl_keystore_certificate_chain: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="This node's certificates, as PEM text."
    )
    ssl_key_password: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="The password of the private key."
    )
    ssl_truststore_location: str | None = setting(
        None, live="broker", about="The file with the certificates to trust."
    )
    ssl_truststore_password: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="The password of that file."
    )
    ssl_truststore_type: str = setting(
        "JKS", live="broker", about="The format of that file: PEM, PKCS12 or JKS."
    )
    ssl_truststore_certificates: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="The certificates to trust, as PEM text."
    )
    ssl_allow_dn_changes: bool = setting(
        False, about="Let a reloaded certificate have another distinguished name."
    )
    ssl_allow_san_changes: bool = setting(
        False, about="Let a reloaded certificate lack names the old one had."
    )

    # Read by the authorizer itself in Apache Kafka, and so not described there.
    super_users: str = setting(
        "", internal=True, about="Principals that may do everything, as User:name;User:name."
    )
    allow_everyone_if_no_acl_found: bool = setting(
        False, internal=True, about="Allow everyone to use what no ACL speaks of."
    )
