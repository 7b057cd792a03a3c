"""A trained model as a push: its known files and its card, and nothing else that lies in the folder."""

import re
from pathlib import Path

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.leaks import TRAINING_TEXTS
from stscurate.methods.secrets import find_secrets
from stscurate.publishing.checksums import CARD, CHECKSUMS, checksum_lines
from stscurate.publishing.merging import front_and_body
from stscurate.publishing.outgoing import Outgoing, OutgoingFile

# What sentence-transformers and transformers save and read. No pickled weights: to load those is to run what they hold.
KNOWN_FILES = {
    "modules.json", "config.json", "config_sentence_transformers.json", "sentence_bert_config.json",
    "generation_config.json", "adapter_config.json", "model.safetensors.index.json", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt",
    "tokenizer.model", "sentencepiece.bpe.model", "spiece.model", "chat_template.jinja", "training_curve.json",
    TRAINING_TEXTS,
}  # fmt: skip
_WEIGHTS = re.compile(r"(adapter_)?model(-\d{5}-of-\d{5})?\.safetensors")
_MODULE = re.compile(r"\d+_[A-Za-z]+")  # 1_Pooling, 2_Dense ...
_BEGIN, _END = "<!-- stscurate: begin model -->\n", "<!-- stscurate: end model -->\n"


def read_model(folder: Path, name: str) -> tuple[Outgoing, list[str]]:
    """What of a model's folder is to be pushed to "owner/name", and the names of the files that stay here.

    InputError where the folder isn't a model that sentence-transformers loads, or has no card.
    """
    if not (folder / "modules.json").is_file() or not any(_WEIGHTS.fullmatch(path.name) for path in _inside(folder)):
        raise InputError(
            f"{folder} isn't a model: it needs modules.json and weights as safetensors, which `stscurate train` writes."
        )
    if not (folder / CARD).is_file():
        raise InputError(f"{folder} has no card: write {CARD}, which says what the model was trained on.")
    card = (folder / CARD).read_bytes().decode("utf-8")
    if secrets := find_secrets(card):
        raise InputError(f"{folder / CARD} holds what looks like a secret ({secrets[0].kind}): take it out.")
    files, left = {}, []
    for path in _inside(folder):
        inside = path.relative_to(folder)
        if _is_known(inside):
            files[inside.as_posix()] = OutgoingFile(inside.as_posix(), path, path.stat().st_size, fingerprint(path))
        elif inside.as_posix() not in (CARD, CHECKSUMS):
            left.append(inside.as_posix())
    sums = checksum_lines({path: file.sha256 for path, file in files.items()})
    files[CHECKSUMS] = OutgoingFile.of_bytes(CHECKSUMS, sums)
    return Outgoing(files, _card(card, name)), left


def _inside(folder: Path) -> list[Path]:
    """All files but hidden ones."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _is_known(inside: Path) -> bool:
    folders = inside.parts[:-1]
    placed = len(folders) <= 1 and all(_MODULE.fullmatch(part) for part in folders)
    return placed and (inside.name in KNOWN_FILES or _WEIGHTS.fullmatch(inside.name) is not None)


def _card(card: str, name: str) -> str:
    """The card with the repository's name where the folder's stood, its body marked as a section that a push renews."""
    head, body = front_and_body(card)
    body = body.replace('"path/to/this/folder"', f'"{name}"')
    if _BEGIN not in body:
        body = f"{_BEGIN}{body.strip()}\n{_END}"
    return "".join(head or ()) + body
