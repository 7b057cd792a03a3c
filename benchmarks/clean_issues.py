"""What cleaning costs an issue: cleaning itself, the first pass that finds templates, and taking them out.

python benchmarks/clean_issues.py rust-issues.jsonl.xz
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stscurate.methods.templates import Template, templates_of, without_template
from stscurate.methods.texts import clean_issue
from stscurate.sources.dumps import read_bodies, read_issues

Result = TypeVar("Result")


def main() -> None:
    """Read the issues, then time each step alone, the fastest of three runs, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("issues", type=Path, help="JSON lines of issues with their comments")
    path = parser.parse_args().issues
    issues = [issue for batch, _ in read_issues(path, size=1_000) for issue in batch]
    print(f"| step | ms an issue, {len(issues):,} issues |\n|---|---|")
    cleaned = _timed("cleaning", len(issues), lambda: [clean_issue(issue.title, issue.body) for issue in issues])
    _timed("reading the file for the first pass", len(issues), lambda: sum(1 for _ in read_bodies(path)))
    templates = _timed(
        "finding templates", len(issues), lambda: templates_of((issue.repository, issue.body) for issue in issues)
    )
    found = [templates.get(issue.repository, Template({})) for issue in issues]
    pairs = list(zip(cleaned, found, strict=True))
    texts = _timed("taking them out", len(issues), lambda: [without_template(one.text, own) for one, own in pairs])
    changed = Counter(what for one in cleaned for what in one.removed + one.replaced)
    changed["template"] = sum(text != one.text for text, one in zip(texts, cleaned, strict=True))
    print("\n| in how many texts | |\n|---|---|")
    for what, count in sorted(changed.items()):
        print(f"| {what} | {count:,} |")


def _timed(name: str, issues: int, step: Callable[[], Result]) -> Result:
    least = float("inf")
    for _ in range(3):
        began = time.process_time()
        result = step()
        least = min(least, time.process_time() - began)
    print(f"| {name} | {1000 * least / issues:.3f} |")
    return result


if __name__ == "__main__":
    main()
