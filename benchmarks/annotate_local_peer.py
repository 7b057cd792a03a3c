"""One round of distilabel's TransformersLLM, by its own interpreter (it needs nothing of ours).

    PYTHON benchmarks/annotate_local_peer.py MODEL MESSAGES BATCH

MODEL is a transformers folder, MESSAGES a JSON list of conversations. Two tokens are generated greedily for each, on
one thread, in batches of so many. Prints the seconds of the processor, model loaded and warm, and the answers.
"""

import json
import os
import sys
import time

import torch


def main() -> None:
    """Load, warm, generate, print."""
    folder, path, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    from distilabel.models import TransformersLLM  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    with open(path, encoding="utf-8") as file:
        conversations = json.load(file)
    llm = TransformersLLM(model=folder, torch_dtype="float32", device="cpu")
    llm.load()
    options = {"max_new_tokens": 2, "do_sample": False}
    llm.generate_outputs(inputs=conversations[:1], **options)
    began = time.process_time()
    answers = []
    for at in range(0, len(conversations), batch):
        found = llm.generate_outputs(inputs=conversations[at : at + batch], **options)
        answers += [one["generations"][0] for one in found]
    print(json.dumps({"seconds": time.process_time() - began, "answers": answers}))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
