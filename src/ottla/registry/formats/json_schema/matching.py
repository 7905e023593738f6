"""The largest matching in a bipartite graph."""

from __future__ import annotations


def matching(edges: list[list[int]]) -> dict[int, int]:
    """Pairs as many as possible of those on the left with one of their own on the right, and says which with
    which. `edges` has, for each on the left, those on the right that it may go with."""
    right_of: dict[int, int] = {}
    left_of: dict[int, int] = {}
    for left in range(len(edges)):
        free, reached_from = _free_place(left, edges, left_of)
        # Everyone along the way from the free place moves on by one.
        while free is not None:
            mover = reached_from[free]
            left_of[free] = mover
            previous = right_of.get(mover)
            right_of[mover] = free
            free = previous
    return right_of


def _free_place(
    start: int, edges: list[list[int]], left_of: dict[int, int]
) -> tuple[int | None, dict[int, int]]:
    """A place that is free, or is if others move on, and from whom each place was reached."""
    reached_from: dict[int, int] = {}
    pending = [start]
    for left in pending:
        for right in edges[left]:
            if right not in reached_from:
                reached_from[right] = left
                if right not in left_of:
                    return right, reached_from
                pending.append(left_of[right])
    return None, reached_from
