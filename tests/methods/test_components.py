import random

from stscurate.methods.components import components


def test_members_carry_the_smallest_of_their_component() -> None:
    assert components(5, [(3, 1), (4, 3)]) == [0, 1, 2, 1, 1]
    assert components(0, []) == []
    assert components(2, [(0, 0), (1, 0), (0, 1)]) == [0, 0]


def test_equals_a_flood_fill_whatever_the_order_of_edges() -> None:
    generator = random.Random(0)
    for _ in range(50):
        n = generator.randint(1, 30)
        edges = [(generator.randrange(n), generator.randrange(n)) for _ in range(generator.randint(0, 30))]
        neighbours: list[set[int]] = [{i} for i in range(n)]
        for one, other in edges:
            neighbours[one].add(other)
            neighbours[other].add(one)
        expected = []
        for start in range(n):
            reached, frontier = {start}, {start}
            while frontier:
                frontier = set().union(*(neighbours[i] for i in frontier)) - reached
                reached |= frontier
            expected.append(min(reached))
        assert components(n, edges) == expected
        assert components(n, [(b, a) for a, b in reversed(edges)]) == expected


def test_a_chain_of_a_hundred_thousand_is_no_recursion() -> None:
    n = 100_000
    assert components(n, ((i + 1, i) for i in reversed(range(n - 1)))) == [0] * n
