"""Transactions and the state of producers."""

from __future__ import annotations

from ottla.config.settings import Kind, MiB, setting, settings


@settings
class TransactionSettings:
    """Transactions and the state of producers."""

    transaction_max_timeout_ms: int = setting(
        900_000, at_least=1, about="The longest transaction timeout a producer may ask for."
    )
    transactional_id_expiration_ms: int = setting(
        604_800_000, at_least=1, about="Forget a transactional id that was not used for this long."
    )
    transaction_two_phase_commit_enable: bool = setting(
        False, about="Let an outside coordinator decide when a transaction ends."
    )
    transaction_partition_verification_enable: bool = setting(
        True,
        live="cluster",
        about="Ask the coordinator whether a partition is in the transaction before writing to it.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        10_000, at_least=1, about="How often to look for transactions that took too long."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        3_600_000, at_least=1, about="How often to look for expired transactional ids."
    )
    transaction_state_log_load_buffer_size: int = setting(
        5 * MiB, at_least=1, about="Bytes read at a time when transaction state is loaded."
    )
    transaction_state_log_min_isr: int = setting(
        2, at_least=1, about="The min.insync.replicas of __transaction_state."
    )
    transaction_state_log_num_partitions: int = setting(
        50, at_least=1, about="Partitions of __transaction_state; not to be changed once it exists."
    )
    transaction_state_log_replication_factor: int = setting(
        3, kind=Kind.SHORT, at_least=1, about="Replicas of __transaction_state."
    )
    transaction_state_log_segment_bytes: int = setting(
        100 * MiB, at_least=1, about="The segment size of __transaction_state."
    )
    producer_id_expiration_ms: int = setting(
        86_400_000,
        at_least=1,
        live="cluster",
        about="Forget the state of an idempotent producer after this long without a write.",
    )
    producer_id_expiration_check_interval_ms: int = setting(
        600_000, at_least=1, internal=True, about="How often to look for expired producers."
    )
    add_partitions_to_txn_retry_backoff_ms: int = setting(
        20, at_least=1, about="The pause before asking the coordinator again to add a partition."
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = setting(
        100, at_least=0, about="The most time spent asking the coordinator again to add a partition."
    )
