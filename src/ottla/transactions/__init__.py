"""What belongs together: transactions as machines whose state is a log.

`machine.py` is the machine of one partition of `__transaction_state`: what each request decides. Its words
are in `states.py` (which state may follow which) and `transaction.py` (what is known of one transactional
id), its bytes in `records.py`, and what it asks others to do in `effects.py`.
"""
