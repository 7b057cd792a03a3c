"""Connected components: which things hang together, by whatever edges."""

from collections.abc import Iterable


def components(n: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """For each of the things 0..n-1 the smallest member of its component. Edges have no direction.

    >>> components(5, [(3, 1), (4, 3)])
    [0, 1, 2, 1, 1]
    """
    parent = list(range(n))

    def find(member: int) -> int:
        while parent[member] != member:
            parent[member] = parent[parent[member]]  # halve the path: the next search is shorter
            member = parent[member]
        return member

    for one, other in edges:
        low, high = sorted((find(one), find(other)))
        parent[high] = low  # the smaller root stays, so that the result doesn't depend on the edges' order
    return [find(member) for member in range(n)]
