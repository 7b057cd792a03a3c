"""The size bias of a model on CISI: the published experiment, its controls, bands of length and hubs.

    python benchmarks/size_bias_cisi.py CISI.ALL --answers FILE [--sentences rules] [--controls 400] [--figure FOLDER]

1,460 documents (the field W), all-MiniLM-L6-v2 in fp32, seed 0. With --sentences nltk and its data punkt_tab these are
the 6,331 sentences of the published counts (`llama-index-core` brings the data: NLTK_DATA=.../_static/nltk_cache).
Embeddings are kept in --answers: the second call takes seconds. Printed as Markdown.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from stscurate.audit.size_bias import Settings, audit, read_corpus
from stscurate.audit.size_bias.figure import draw
from stscurate.audit.size_bias.report import as_markdown
from stscurate.services.answers import Answers


def main() -> None:
    """Audit, and print the tables."""
    parser = argparse.ArgumentParser(description="Size bias on CISI.")
    parser.add_argument("file", type=Path, help="CISI.ALL")
    parser.add_argument("--answers", type=Path, required=True, help="file where embeddings are kept")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="default: %(default)s")
    parser.add_argument("--sentences", default="rules", help="rules, punkt or nltk (default: %(default)s)")
    parser.add_argument("--controls", type=int, default=400, help="texts in each control (default: %(default)s)")
    parser.add_argument("--figure", type=Path, help="folder for the figure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = read_corpus(options.file, sentences=options.sentences)
    with Answers(options.answers, synced=False) as answers:
        settings = Settings(options.model, sentences=options.sentences, controls=options.controls)
        results: dict[str, Any] = audit(corpus, settings, answers=answers)
    print(as_markdown(results))
    if options.figure:
        options.figure.mkdir(parents=True, exist_ok=True)
        draw(results, options.figure)


if __name__ == "__main__":
    main()
