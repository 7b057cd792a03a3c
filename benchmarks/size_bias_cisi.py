"""The size bias of a model on CISI: the published experiment, its controls, bands of length and hubs.

    python benchmarks/size_bias_cisi.py CISI.ALL --answers FILE [--sentences rules] [--controls 400] [--figure FOLDER]
        [--chunks]

1,460 documents (the field W), all-MiniLM-L6-v2 in fp32, seed 0. With --sentences nltk and its data punkt_tab these are
the 6,331 sentences of the published counts (`llama-index-core` brings the data: NLTK_DATA=.../_static/nltk_cache).
Embeddings are kept in --answers: the second call takes seconds. Printed as Markdown. --chunks also cuts each ten
documents joined into runs of as many tokens as the model reads, and compares the means of these chunks' vectors.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from stscurate.audit.size_bias import Corpus, Settings, audit, read_corpus
from stscurate.audit.size_bias.corpus import joined
from stscurate.audit.size_bias.figure import draw
from stscurate.audit.size_bias.report import as_markdown
from stscurate.methods.cosines import Moments, unit_rows
from stscurate.services.answers import Answers
from stscurate.services.encoder import Encoder
from stscurate.services.models import locate


def main() -> None:
    """Audit, and print the tables."""
    parser = argparse.ArgumentParser(description="Size bias on CISI.")
    parser.add_argument("file", type=Path, help="CISI.ALL")
    parser.add_argument("--answers", type=Path, required=True, help="file where embeddings are kept")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="default: %(default)s")
    parser.add_argument("--sentences", default="rules", help="rules, punkt or nltk (default: %(default)s)")
    parser.add_argument("--controls", type=int, default=400, help="texts in each control (default: %(default)s)")
    parser.add_argument("--figure", type=Path, help="folder for the figure")
    parser.add_argument("--chunks", action="store_true", help="also the means of chunks of the model's length")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = read_corpus(options.file, sentences=options.sentences)
    with Answers(options.answers, synced=False) as answers:
        settings = Settings(options.model, sentences=options.sentences, controls=options.controls)
        results: dict[str, Any] = audit(corpus, settings, answers=answers)
        chunks = of_chunks(corpus, Encoder(options.model, answers=answers)) if options.chunks else ""
    print(as_markdown(results) + chunks)
    if options.figure:
        options.figure.mkdir(parents=True, exist_ok=True)
        draw(results, options.figure)


def of_chunks(corpus: Corpus, encoder: Encoder) -> str:
    """Mean and deviation of all cosines of ten documents joined, each the mean of its chunks' unit vectors."""
    texts = ["\n".join(part) for part in joined(corpus.documents, 10)]
    tokenizer = AutoTokenizer.from_pretrained(locate(encoder.model.name).path)
    size = (encoder.reads or 10**9) - tokenizer.num_special_tokens_to_add()
    chunks, owner = [], []
    for number, text in enumerate(texts):
        ends = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
        for start in range(0, len(ends), size):
            own = ends[start : start + size]
            chunks.append(text[own[0][0] : own[-1][1]])
            owner.append(number)
    vectors, place = encoder.encode(chunks), np.array(owner)
    means = unit_rows(np.stack([vectors[place == number].mean(axis=0) for number in range(len(texts))]))
    found = Moments.of(means).within()
    return (
        f"\n10 documents joined, the mean of {len(chunks)} chunks of {size} tokens: {found.mean:.4f} / {found.sd:.4f}\n"
    )


if __name__ == "__main__":
    main()
