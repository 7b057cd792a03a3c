"""How the time of cleaning, of secrets, references and links grows with bodies that were built to be slow.

Three doublings of the body make a linear reader eight times as slow, a quadratic one sixty-four times.

PYTHONPATH=. python benchmarks/linear_time.py
"""

import argparse

from tests.slow_bodies import LONGEST, PARTS, READERS, body, seconds

_LENGTHS = (LONGEST // 4, LONGEST // 2, LONGEST, LONGEST * 2)
_LEAST = 0.002  # seconds: below, a ratio says more of the clock than of the reader


def main() -> None:
    """Measure every reader on every body, and print a Markdown table: the slowest body of each and the worst growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2, help="runs of which the fastest counts")
    times = parser.parse_args().times
    sizes = ", ".join(f"{length // 1024}k" for length in _LENGTHS)
    print(f"| reader | slowest body | ms at {sizes} characters | most growth over all three doublings | of the body |")
    print("|---|---|---|---|---|")
    for name, reader in READERS.items():
        took = {
            part: [seconds(reader, body(part, length), times) for length in _LENGTHS]
            for parts in PARTS.values()
            for part in parts
        }
        slowest = max(took, key=lambda part: took[part][2])
        growth = {part: row[-1] / row[0] if row[0] > _LEAST else 0.0 for part, row in took.items()}
        steepest = max(growth, key=lambda part: growth[part])
        shown = ", ".join(f"{1000 * value:.1f}" for value in took[slowest])
        print(f"| {name} | `{slowest!r}` | {shown} | {growth[steepest]:.1f} | `{steepest!r}` |", flush=True)


if __name__ == "__main__":
    main()
