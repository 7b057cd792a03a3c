"""The static embeddings of the package wordllama as a sentence-transformers folder, so that they can mine negatives.

pip install --no-deps --target FOLDER wordllama==0.4.0.post1
python benchmarks/static_model.py FOLDER/wordllama MODEL
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer


def main() -> None:
    """Write the folder: 32,000 vectors of 256 dimensions, a text's is the mean over its tokens."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="the package's own folder")
    parser.add_argument("model", type=Path, help="folder to write")
    options = parser.parse_args()
    weights = load_file(options.package / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(options.package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    module = StaticEmbedding(tokenizer, embedding_weights=weights.astype(np.float32))
    SentenceTransformer(modules=[module], device="cpu").save(str(options.model), create_model_card=False)


if __name__ == "__main__":
    main()
