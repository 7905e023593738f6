"""Share groups (KIP-932): who is in one, which partitions its members read, and whose state is set up.

What the records of a shared partition have come to is not kept here but by the share coordinator
(`groups/share_state.py`), and while they are being delivered by the partition's leader
(`replication/share_partition.py`).
"""
