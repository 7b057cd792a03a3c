"""Those issues of a file whose cleaned text has at most so many tokens: encoding them all takes minutes, not an hour.

python benchmarks/short_issues.py rust-issues.jsonl.xz short.jsonl [--tokens 256]
"""

import argparse
import json
import tempfile
from pathlib import Path

from stscurate.files import json_lines
from stscurate.pairing.tokens import token_counter
from stscurate.sources import collect_issues
from stscurate.store import Run


def main() -> None:
    """Copy the issues, in their order, and print how many they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("issues", type=Path, help="JSON lines of issues with their comments")
    parser.add_argument("short", type=Path, help="file to write")
    parser.add_argument("--tokens", type=int, default=256, help="most tokens of a text, special ones included")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Run.open(Path(folder) / "run") as run:
        collect_issues(run, options.issues)
        issues = run.table("issues").select(["repository", "number", "clean_text"]).to_pylist()
    tokens = token_counter(None).count([issue["clean_text"] for issue in issues])
    short = {
        (issue["repository"], issue["number"])
        for issue, count in zip(issues, tokens, strict=True)
        if count <= options.tokens
    }
    rows = [row for _, row in json_lines(options.issues) if (row["repository"], row["number"]) in short]
    options.short.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows):,} of {len(issues):,} issues")


if __name__ == "__main__":
    main()
