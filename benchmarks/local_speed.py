"""How many votes a second a small language model gives here, against the same votes computed plainly.

    python benchmarks/local_speed.py stsb-en-dev.csv [--pairs 64] [--repeats 3] [--votes digit] [--distilabel PYTHON]

Ours: the shared prefix computed once, batches by length, bf16 where the processor multiplies it. Plain: float32, every
sequence from its first token, batches of 16 in the order of the file, padded on the right. Both give information gain
after two demonstrations, and the expected digit after a chat prompt; that they agree is printed beside. Seconds are of
the processor, on one thread, so that other work on the machine doesn't count; medians. With --distilabel, an
interpreter that has it, its TransformersLLM generates the same digits from the same messages, in turn with ours (peer
script: annotate_local_peer.py). Printed as Markdown.
"""

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from scipy.stats import spearmanr

from stscurate.annotators.base import Annotator, Pair
from stscurate.annotators.digits import DigitAnnotator
from stscurate.annotators.information_gain import InformationGainAnnotator, Paraphrase
from stscurate.annotators.prompts import Prompt
from stscurate.progress import silent
from stscurate.services.answers import Answers
from stscurate.services.languagemodel import LanguageModel

NEAR = [
    ["A man is playing a guitar.", "Someone plays the guitar."],
    ["Shares fell sharply on Tuesday.", "On Tuesday, stocks dropped a lot."],
]
AT_ONCE = 16


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Votes a second of a local model, ours against plain.")
    parser.add_argument("file", type=Path, help="stsb-en-dev.csv")
    parser.add_argument("--model", default="SmolLM2-135M-Instruct", help="the language model (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=64, help="pairs, drawn with seed 1 (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="medians of so many (default: %(default)s)")
    parser.add_argument("--votes", choices=["information gain", "digit"], help="one kind of votes (default: both)")
    parser.add_argument("--distilabel", help="interpreter of an environment with distilabel (default: not compared)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with options.file.open(newline="", encoding="utf-8") as file:
        rows = random.Random(1).sample(list(csv.reader(file)), options.pairs)
    pairs = [Pair(str(number), row[0], row[1]) for number, row in enumerate(rows)]
    ours, fp32 = LanguageModel(options.model), LanguageModel(options.model, precision="fp32")
    words, prompt = replace(Paraphrase.load(), demonstrations=NEAR), Prompt.load(shots=2)
    for model in (ours, fp32):
        InformationGainAnnotator("warm", model, prompt=words).gains(pairs[:2], _nowhere(), silent)
    print(
        f"{len(pairs)} pairs of STS-B dev, {options.model}, ours in {ours.precision}, 1 thread, "
        f"medians of {options.repeats}"
    )
    print("\n| votes | ours, a second | plain fp32, a second | ours / plain | Spearman of the two |")
    print("|---|---|---|---|---|")
    kinds: dict[str, tuple[Annotator, Callable[[], np.ndarray]]] = {
        "information gain": (InformationGainAnnotator("g", ours, prompt=words), lambda: plain_gain(fp32, words, pairs)),
        "digit": (DigitAnnotator("d", ours, prompt=prompt), lambda: plain_digits(fp32, prompt, pairs)),
    }
    peer = partial(generated, options.distilabel, fp32, prompt, pairs) if options.distilabel else None
    for label in [options.votes] if options.votes else kinds:
        annotator, plainly = kinds[label]
        fast, slow, theirs = [], [], []
        for _ in range(options.repeats):
            began = time.process_time()
            with TemporaryDirectory() as folder, Answers(Path(folder) / "answers.sqlite") as answers:
                found = [row["raw"] for of_pair in annotator.vote(pairs, answers, silent) for row in of_pair]
            fast.append(len(pairs) / (time.process_time() - began))
            began = time.process_time()
            other = plainly()
            slow.append(len(pairs) / (time.process_time() - began))
            if peer and label == "digit":
                theirs.append(len(pairs) / peer())
        one, two = statistics.median(fast), statistics.median(slow)
        print(
            f"| {label} | {one:.2f} | {two:.2f} | {one / two:.1f} | {spearmanr(found, other).statistic:.4f} |",
            flush=True,
        )
        if theirs:
            peers = statistics.median(theirs)
            print(
                f"\ndistilabel's TransformersLLM: {peers:.2f} a second, ours {one / peers:.1f} times that", flush=True
            )


def generated(python: str, model: LanguageModel, prompt: Prompt, pairs: list[Pair]) -> float:
    """Seconds of the processor that distilabel takes to generate an answer to each pair's prompt."""
    with TemporaryDirectory() as folder:
        place, messages = Path(folder) / "model", Path(folder) / "messages.json"
        model._network.network.save_pretrained(place)
        model._network.tokenizer.save_pretrained(place)
        messages.write_text(json.dumps([list(prompt.messages(pair.text1, pair.text2)) for pair in pairs]))
        script = Path(__file__).with_name("annotate_local_peer.py")
        done = subprocess.run(
            [python, str(script), str(place), str(messages), str(AT_ONCE)],
            env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def _nowhere() -> Answers:
    """Answers in memory."""
    return Answers(Path(":memory:"))


def plain_gain(model: LanguageModel, words: Paraphrase, pairs: list[Pair]) -> np.ndarray:
    """Information gain, every sequence whole."""
    sequences, starts = [], []
    for pair in pairs:
        for a, b in ((pair.text1, pair.text2), (pair.text2, pair.text1)):
            for context in (words.after(a), words.alone):
                before, target = model.ids([words.prefix])[0] + model.ids([context])[0], model.ids([f" {b}"])[0]
                sequences.append(before + target)
                starts.append(len(before))
    found = []
    for at in range(0, len(sequences), AT_ONCE):
        logits = _forward(model, sequences[at : at + AT_ONCE]).log_softmax(2)
        for row, (ids, start) in enumerate(zip(sequences[at : at + AT_ONCE], starts[at : at + AT_ONCE], strict=True)):
            found.append(sum(float(logits[row, place - 1, ids[place]]) for place in range(start, len(ids))))
    given, alone = np.array(found).reshape(-1, 2, 2).transpose(2, 0, 1)
    return np.asarray(((given - alone) / -alone).mean(axis=1))


def plain_digits(model: LanguageModel, prompt: Prompt, pairs: list[Pair]) -> np.ndarray:
    """The expected digit, every question whole."""
    digits = [ids[0][0] for ids in model.answer_ids(list(prompt.values)).values()]
    sequences = [model.chat(prompt.messages(pair.text1, pair.text2))[0].ids for pair in pairs]
    found = []
    for at in range(0, len(sequences), AT_ONCE):
        part = sequences[at : at + AT_ONCE]
        chances = _forward(model, part).softmax(2)
        for row, ids in enumerate(part):
            shares = chances[row, len(ids) - 1, digits].double().numpy()
            found.append(float(shares @ np.arange(len(digits)) / shares.sum()))
    return np.array(found)


@torch.inference_mode()
def _forward(model: LanguageModel, sequences: list[tuple[int, ...]]) -> torch.Tensor:
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(one) for one in sequences], batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(one)) for one in sequences], batch_first=True).long()
    return torch.as_tensor(model._network.network(input_ids=ids, attention_mask=mask).logits)


if __name__ == "__main__":
    main()
