"""What all-MiniLM-L6-v2's vectors lose by truncation and whitening: pairs, retrieval within groups, a linear probe.

stsb: the folder of STS-B's CSV files, of which dev is read. nli: SNLI as s1.dev, s2.dev, labels.dev, of which the first
3,000 rows are read: each premise and the hypothesis it entails are a group, and the probe is to tell the label from the
hypothesis alone, which it shouldn't (Gururangan et al., NAACL 2018).
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from stscurate.evaluation import Variants, Wanted, as_markdown, evaluate_all, gold_set
from stscurate.evaluation.tasks import Probe, Retrieval, read_groups, read_labels

ROWS = 3_000


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stsb", type=Path)
    parser.add_argument("nli", type=Path)
    options = parser.parse_args()
    files = ("s1.dev", "s2.dev", "labels.dev")
    lines = [(options.nli / name).read_text("utf-8").splitlines()[:ROWS] for name in files]
    rows = list(zip(*lines, strict=True))
    groups = {premise: hypothesis for premise, hypothesis, label in rows if label == "entailment"}
    captions = [{"text": text, "group": number} for number, pair in enumerate(groups.items()) for text in pair]
    hypotheses = [{"text": hypothesis, "label": label} for _, hypothesis, label in rows]
    with TemporaryDirectory() as folder:
        for name, made in (("groups.jsonl", captions), ("hypotheses.jsonl", hypotheses)):
            (Path(folder) / name).write_text("".join(json.dumps(row) + "\n" for row in made))
        wanted = Wanted(
            variants=Variants(whiten=True, dimensions=(64, 128, 256)),
            tasks=[
                Retrieval(read_groups(Path(folder) / "groups.jsonl")),
                Probe(read_labels(Path(folder) / "hypotheses.jsonl")),
            ],
        )
        gold = gold_set(f"stsb:validation={options.stsb}")
        print(as_markdown(evaluate_all(["all-MiniLM-L6-v2"], [gold], wanted).as_dict()))


if __name__ == "__main__":
    main()
