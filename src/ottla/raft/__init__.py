"""KRaft, the consensus under the metadata log: who votes, who leads, what is committed.

Pure. At present it knows what a quorum of one voter needs; elections between several build on the same words.
"""
