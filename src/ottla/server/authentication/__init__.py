"""SASL, as a broker sees it: the mechanisms, one exchange, and the gate that a connection passes.

`mechanism`, `plain`, `scram` and `exchange` decide and know nothing of sockets or time; `gate` and `session`
are the shells around them, for a connection that has not authenticated yet and for one that does so again.
Imported only where a listener uses SASL.
"""
