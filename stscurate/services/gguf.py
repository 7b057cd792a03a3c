"""GGUF files: a model of one is converted once into a folder, which transformers loads in a second."""

import fcntl
import os
import shutil
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import torch

from stscurate.disk import sync_tree
from stscurate.errors import InputError, first_line
from stscurate.services.encoder import quiet
from stscurate.services.models import Model
from stscurate.services.whole import check_whole


def converted(model: Model) -> Path:
    """The folder of a GGUF file's model, converted once: reading GGUF takes half a minute, the folder a second.

    It lies in ~/.cache/stscurate/models/FINGERPRINT (under STSCURATE_CACHE where that is set) and appears whole.
    """
    cache = Path(os.environ.get("STSCURATE_CACHE") or Path.home() / ".cache" / "stscurate")
    folder = cache / "models" / model.fingerprint
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be converting it: then wait for its result
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            _convert(model, partial)
            sync_tree(partial)
            partial.rename(folder)
    return folder


def _convert(model: Model, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Its bar can't be switched off, only sent elsewhere.
    with quiet(), redirect_stderr(StringIO()):
        try:
            place = {"pretrained_model_name_or_path": model.path.parent, "gguf_file": model.path.name}
            tokenizer = AutoTokenizer.from_pretrained(**place)
            network, told = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, output_loading_info=True)
        except Exception as error:  # the libraries raise many kinds for a damaged file
            raise broken(model.name, error) from None
        check_whole(model.name, told["missing_keys"])
        # The weights are plain numbers now; told that they are quantized, it refuses to save them.
        network.hf_quantizer = None
        network.is_quantized = False
        del network.config.quantization_config
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def broken(name: str, error: Exception) -> InputError:
    """What is told of a model that doesn't load."""
    return InputError(
        f"{name} can't be loaded as a causal language model ({first_line(error)}): copy or save it again."
    )
