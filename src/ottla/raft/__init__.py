"""KRaft, the consensus under the metadata log: who votes, who leads, what is committed.

Pure. `machine.py` is a node of the quorum, the other modules are its parts; `runtime/` has what runs it.
"""
