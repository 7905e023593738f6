"""SASL: passwords, Kerberos and OAuth tokens."""

from __future__ import annotations

from ottla.config.settings import KiB, Kind, setting, settings


@settings
class SaslSettings:
    """SASL: passwords, Kerberos and OAuth tokens."""

    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        ("GSSAPI",), live="broker", about="The mechanisms offered to clients."
    )
    sasl_mechanism_inter_broker_protocol: str = setting(
        "GSSAPI", live="broker", about="The mechanism brokers use among themselves."
    )
    sasl_mechanism_controller_protocol: str = setting(
        "GSSAPI", about="The mechanism used to reach controllers."
    )
    sasl_jaas_config: str | None = setting(
        None, kind=Kind.PASSWORD, live="broker", about="Credentials and options of a mechanism, in JAAS form."
    )
    sasl_client_callback_handler_class: str | None = setting(
        None, kind=Kind.CLASS, about="A plug-in for the client side of SASL."
    )
    sasl_server_callback_handler_class: str | None = setting(
        None, kind=Kind.CLASS, about="A plug-in for the server side of SASL."
    )
    sasl_login_callback_handler_class: str | None = setting(
        None, kind=Kind.CLASS, about="A plug-in for logging in."
    )
    sasl_login_class: str | None = setting(None, kind=Kind.CLASS, about="A plug-in that replaces the login.")
    sasl_server_max_receive_size: int = setting(
        512 * KiB, about="The largest message accepted before authentication is done."
    )
    connections_max_reauth_ms: int = setting(
        0, kind=Kind.LONG, about="Make clients authenticate again at least this often; 0 for never."
    )
    sasl_kerberos_service_name: str | None = setting(
        None, live="broker", about="The Kerberos principal name of the brokers."
    )
    sasl_kerberos_kinit_cmd: str = setting("/usr/bin/kinit", live="broker", about="The kinit command.")
    sasl_kerberos_min_time_before_relogin: int = setting(
        60_000, kind=Kind.LONG, live="broker", about="The least time between two ticket refreshes."
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = setting(
        ("DEFAULT",), live="broker", about="How Kerberos principals become short names."
    )
    sasl_kerberos_ticket_renew_jitter: float = setting(
        0.05, live="broker", about="How much the renewal of a ticket varies."
    )
    sasl_kerberos_ticket_renew_window_factor: float = setting(
        0.8, live="broker", about="Renew a ticket after this share of its lifetime."
    )
    sasl_login_connect_timeout_ms: int | None = setting(
        None, about="How long to wait for a connection to the token endpoint."
    )
    sasl_login_read_timeout_ms: int | None = setting(
        None, about="How long to wait for an answer of the token endpoint."
    )
    sasl_login_refresh_window_factor: float = setting(
        0.8, live="broker", about="Refresh a token after this share of its lifetime."
    )
    sasl_login_refresh_window_jitter: float = setting(0.05, live="broker", about="How much that varies.")
    sasl_login_refresh_min_period_seconds: int = setting(
        60, kind=Kind.SHORT, live="broker", about="The least time between two token refreshes."
    )
    sasl_login_refresh_buffer_seconds: int = setting(
        300, kind=Kind.SHORT, live="broker", about="Refresh a token at least this long before it ends."
    )
    sasl_login_retry_backoff_ms: int = setting(
        100, kind=Kind.LONG, about="The first pause after a failed login."
    )
    sasl_login_retry_backoff_max_ms: int = setting(
        10_000, kind=Kind.LONG, about="The longest pause after failed logins."
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(None, about="Where to get a token.")
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        None, about="The client id for getting a token."
    )
    sasl_oauthbearer_client_credentials_client_secret: str | None = setting(
        None, kind=Kind.PASSWORD, about="The client secret for getting a token."
    )
    sasl_oauthbearer_scope: str | None = setting(None, about="The scope asked for.")
    sasl_oauthbearer_scope_claim_name: str = setting("scope", about="The claim that holds the scope.")
    sasl_oauthbearer_sub_claim_name: str = setting("sub", about="The claim that holds the subject.")
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        None, about="Where the keys that verify tokens are."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        3_600_000, kind=Kind.LONG, about="How often those keys are fetched again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        100, kind=Kind.LONG, about="The first pause after a failed fetch of the keys."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        10_000, kind=Kind.LONG, about="The longest pause after failed fetches of the keys."
    )
    sasl_oauthbearer_jwt_retriever_class: str = setting(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        kind=Kind.CLASS,
        about="A plug-in that gets tokens.",
    )
    sasl_oauthbearer_jwt_validator_class: str = setting(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        kind=Kind.CLASS,
        about="A plug-in that verifies tokens.",
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        30, about="How far clocks may differ when a token is checked."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(
        (), about="Audiences accepted in a token; empty for any."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(None, about="The issuer accepted in a token.")
    sasl_oauthbearer_assertion_algorithm: str = setting(
        "RS256", choices=("ES256", "RS256"), any_case=True, about="The algorithm that signs assertions."
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = setting(None, about="The audience of assertions.")
    sasl_oauthbearer_assertion_claim_exp_seconds: int = setting(
        300, at_least=0, at_most=86_400, about="How long an assertion is valid."
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = setting(None, about="The issuer of assertions.")
    sasl_oauthbearer_assertion_claim_jti_include: bool = setting(
        False, about="Give every assertion an id of its own."
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = setting(
        60, at_least=0, at_most=3_600, about="How far back an assertion is valid."
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = setting(None, about="The subject of assertions.")
    sasl_oauthbearer_assertion_file: str | None = setting(None, about="A file with a ready assertion.")
    sasl_oauthbearer_assertion_private_key_file: str | None = setting(
        None, about="The key that signs assertions."
    )
    sasl_oauthbearer_assertion_private_key_passphrase: str | None = setting(
        None, kind=Kind.PASSWORD, about="The passphrase of that key."
    )
    sasl_oauthbearer_assertion_template_file: str | None = setting(
        None, about="A file with more headers and claims for assertions."
    )
