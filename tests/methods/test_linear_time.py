import pytest

from tests.slow_bodies import LONGEST, PARTS, READERS, body, seconds

# Slow but linear readers are held to it on shorter bodies.
SHORTER = {"templates": 8, "references": 4, "claims": 8, "labels in texts": 8, "comments": 32}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("reader", READERS)
def test_four_times_the_body_takes_some_four_times_as_long(reader: str, parts: str) -> None:
    length = LONGEST // SHORTER.get(reader, 1)
    for part in PARTS[parts]:
        for _ in range(3):  # another process can slow a run down, never speed it up
            short = seconds(READERS[reader], body(part, length // 4), 2)
            long = seconds(READERS[reader], body(part, length), 1)
            if long < 8 * short + 0.02:  # a quadratic reader takes sixteen times as long
                break
        assert long < 8 * short + 0.02, f"{part!r}: {short:.3f} s, then {long:.3f} s"
