"""ArcCSE against NT-Xent (SimCSE) on bare sentences, by the seven STS sets.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/arccse_sts.py FOLDER --work WORK --start small|all-MiniLM-L6-v2
        [--sentences 30000] [--pairs 0] [--seeds 3] [--rate 5e-4] [--read dev|seven] [--method ArcCSE ...]

FOLDER holds cisi, nli, issues, stsb, sick and sts12_16 as published. --sentences of 5 to 40 words drawn (seed 0) from
CISI's abstracts, SNLI's two sides and the titles of the rust issues, none of which stands in an STS set that is read.
small: random weights, 2 layers of 128 with the tokenizer of all-MiniLM-L6-v2 and mean pooling. One pass in batches of
64, tau .05, margin 10 degrees, lambda .1, spans of 20 and 40 % of the tokens deleted, fp32, 64 tokens. The arc alone
(lambda 0) stands between the two. --read dev: STS-B dev, where the rates are chosen. seven: STS 2012 to 2016 (each
year's subsets together), STS-B test, SICK test; --pairs of each, drawn by seed 0. WORK keeps what is computed.
"""

import argparse
import json
import lzma
import random
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.fits import START, Floats, cosines, kept
from benchmarks.local_annotators import Rows, sick, sts16, stsb
from stscurate.methods.correlation import spearman
from stscurate.methods.texts import normalise
from stscurate.records import Tally
from stscurate.services.models import locate
from stscurate.store import Run
from stscurate.tables import Source, text_id
from stscurate.training import Schedule, text_rows, train_arccse, train_simcse, triplet_rows
from stscurate.triplets import make_triplets

METHODS = ("NT-Xent", "arc alone", "ArcCSE")
FEWEST, MOST = 5, 40  # words of a sentence


def main() -> None:
    """Parse, train, test, print."""
    parser = argparse.ArgumentParser(description="ArcCSE against NT-Xent.")
    parser.add_argument("folder", type=Path, help="folder with the data")
    parser.add_argument("--work", type=Path, required=True, help="folder that keeps what is computed")
    parser.add_argument("--start", choices=["small", START], default="small", help="(default: %(default)s)")
    parser.add_argument("--sentences", type=int, default=30_000, help="to train on (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=0, help="read of each set, 0 for all (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=5e-4, help="learning rate at its peak (default: %(default)s)")
    parser.add_argument("--read", choices=["dev", "seven"], default="dev", help="(default: %(default)s)")
    parser.add_argument("--method", action="append", choices=METHODS, help="one method (default: all)")
    given = parser.parse_args()
    held = seven(given.folder) | {"STS-B dev": stsb(given.folder)}
    texts = sentences(given.folder, held.values(), given.sentences)
    sets = {name: rows for name, rows in held.items() if (name == "STS-B dev") == (given.read == "dev")}
    if given.pairs:
        sets = {name: random.Random(0).sample(rows, min(given.pairs, len(rows))) for name, rows in sets.items()}
    print(f"{len(texts)} sentences, start {given.start}, rate {given.rate:g}; pairs {list(map(len, sets.values()))}\n")
    print(f"| trained by | {' | '.join(sets)} | mean | of each seed |\n|---|{'---|' * (len(sets) + 2)}", flush=True)
    for method in ("nothing", *(given.method or METHODS)):
        numbers = []
        for seed in range(given.seeds):
            key = [method, texts, given.start, given.rate, seed, list(sets.values())]
            found = kept(given.work, key, lambda: said(method, texts, given.start, given.rate, seed, sets))  # noqa: B023
            numbers.append(of_sets(found, sets))
        means = np.array(numbers).mean(axis=1)
        cells = " | ".join(f"{100 * number:.2f}" for number in (*np.mean(numbers, axis=0), means.mean()))
        print(f"| {method} | {cells} | {', '.join(f'{100 * mean:.2f}' for mean in means)} |", flush=True)


def said(method: str, texts: list[str], start: str, rate: float, seed: int, sets: dict[str, Rows]) -> Floats:
    """Cosines of all pairs, the sets one after another."""
    with TemporaryDirectory() as folder:
        place = small(Path(folder) / "small", seed) if start == "small" else locate(start).path
        if method != "nothing":
            place = trained(method, texts, place, rate, seed, Path(folder))
        model = SentenceTransformer(str(place), device="cpu")
        return np.concatenate([cosines(model, rows) for rows in sets.values()])


def trained(method: str, texts: list[str], start: Path, rate: float, seed: int, folder: Path) -> Path:
    """The folder of the model trained by the method."""
    schedule = Schedule(1, 64, rate, 64, seed=seed, save_steps=10**6, precision="fp32")
    table = pa.table({"text_id": [text_id(text) for text in texts], "text": texts})
    source = Source(table, "sentences", text_id("\n".join(texts)), Tally(rows_in=len(texts)))
    with Run.open(folder / "run") as run:
        make_triplets(run, source, tokenizer=START, seed=seed)
        made = run.table("triplets")
    if method == "NT-Xent":
        bare = pa.table({"text_id": made["text_id"], "text": made["anchor"]})
        rows = text_rows(bare, inputs=source.inputs)
        train_simcse(rows, folder / "model", model=str(start), schedule=schedule)
    else:
        rows = triplet_rows(made, inputs=source.inputs)
        share = 0.1 if method == "ArcCSE" else 0.0
        train_arccse(rows, folder / "model", triplet_weight=share, model=str(start), schedule=schedule)
    return folder / "model"


def small(folder: Path, seed: int) -> Path:
    """A random BERT of 2 layers of 128, saved."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(str(locate(START).path))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=128,
    )
    torch.manual_seed(seed)
    tokenizer.save_pretrained(str(folder / "bare"))
    BertModel(config).save_pretrained(str(folder / "bare"))
    encoder = Transformer(str(folder / "bare"), max_seq_length=64)
    made = SentenceTransformer(modules=[encoder, Pooling(128, pooling_mode="mean")], device="cpu")
    made.save(str(folder / "model"), create_model_card=False)
    return folder / "model"


def of_sets(found: Floats, sets: dict[str, Rows]) -> list[float]:
    """Spearman of each set."""
    parts = np.split(found, np.cumsum([len(rows) for rows in sets.values()])[:-1])
    return [spearman(part, np.array([row[2] for row in rows])) for part, rows in zip(parts, sets.values(), strict=True)]


def sentences(folder: Path, held: Iterable[Rows], number: int) -> list[str]:
    """Distinct sentences, none of which stands in the sets."""
    known = {normalise(text) for rows in held for one, two, _ in rows for text in (one, two)}
    found: dict[str, str] = {}
    for text in (*cisi(folder), *snli(folder), *titles(folder)):
        text = " ".join(text.split())
        if FEWEST <= len(text.split()) <= MOST and normalise(text) not in known:
            found.setdefault(normalise(text), text)
    texts = sorted(found.values())
    return random.Random(0).sample(texts, min(number, len(texts)))


def cisi(folder: Path) -> list[str]:
    """The sentences of the abstracts."""
    abstracts = re.findall(r"^\.W\n(.*?)(?=^\.[A-Z]\b)", (folder / "cisi/CISI.ALL").read_text("utf-8"), re.M | re.S)
    return [part for text in abstracts for part in re.split(r"(?<=[.?!])\s+(?=[A-Z])", " ".join(text.split()))]


def snli(folder: Path) -> list[str]:
    """Premises and hypotheses of dev and test."""
    return [
        line
        for name in ("s1.dev", "s2.dev", "s1.test", "s2.test")
        for line in (folder / "nli" / name).read_text("utf-8").split("\n")
    ]


def titles(folder: Path) -> list[str]:
    """Titles of the rust issues."""
    with lzma.open(folder / "issues" / "rust-issues.jsonl.xz", "rt", encoding="utf-8") as file:
        return [str(json.loads(line)["title"]) for line in file]


def seven(folder: Path) -> dict[str, Rows]:
    """STS 2012 to 2016, STS-B test and SICK test, the rows with gold."""
    found = {f"STS{year - 2000}": year_of(folder / "sts12_16" / f"STS{year}-gold") for year in (2012, 2013, 2014, 2015)}
    return found | {"STS16": sts16(folder), "STS-B": stsb(folder, "test"), "SICK-R": sick(folder)}


def year_of(folder: Path) -> Rows:
    """All subsets of a year together; lines without gold are left out, and SMT of 2013, whose text is withdrawn."""
    found: Rows = []
    for path in sorted(folder.glob("STS.input.*.txt")):
        if path.parts[-2:] == ("STS2013-gold", "STS.input.SMT.txt"):
            continue
        lines = path.read_text("utf-8").split("\n")
        gold = (folder / path.name.replace("input", "gs", 1)).read_text("utf-8").split("\n")
        for line, number in zip(lines, gold, strict=False):  # one of the two may end without a line break
            fields = line.rstrip("\r").split("\t")
            if number.strip() and len(fields) >= 2:
                found.append((fields[0], fields[1], float(number)))
    return found


if __name__ == "__main__":
    main()
