"""A published set as a task of MTEB, whose leaderboards and loaders then take it as any other (extra `mteb`).

import mteb
from stscurate.evaluation.mteb_task import sts_task
results = mteb.evaluate(mteb.get_model("all-MiniLM-L6-v2"), sts_task("published", name="MyPairs"))
"""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stscurate.disk import fingerprint
from stscurate.errors import InputError

_LANGUAGES = {
    "en": "eng-Latn",
    "de": "deu-Latn",
    "fr": "fra-Latn",
    "es": "spa-Latn",
    "zh": "cmn-Hans",
    "ja": "jpn-Jpan",
}


def sts_task(published: Path | str, *, name: str, split: str = "test", language: str = "en") -> Any:
    """The split of the config `pairs` of a published folder as an `mteb` STS task, scores from 0 to 1.

    Its revision is the SHA-256 of the config's files, so that results of other content are never mixed with it.
    language: one of en, de, fr, es, zh, ja, or MTEB's own code, as eng-Latn. InputError where the folder has no such
    split, `mteb` isn't installed, or the language isn't known.
    """
    try:
        from mteb.abstasks.sts import AbsTaskSTS
        from mteb.abstasks.task_metadata import TaskMetadata
    except ImportError:
        raise InputError('mteb isn\'t installed: run pip install "stscurate[mteb]".') from None
    from datasets import Dataset, DatasetDict

    folder = Path(published)
    files = sorted((folder / "data" / "pairs").glob(f"{split}-*.parquet"))
    if not files:
        raise InputError(f"{folder} has no split {split} of pairs: name a folder that publish wrote, and its split.")
    code = _LANGUAGES.get(language, language)
    if not re.fullmatch(r"[a-z]{3}-[A-Z][a-z]{3}", code):
        raise InputError(f"Language {language!r:.40} isn't known here: give it as MTEB does, as in eng-Latn.")
    metadata = TaskMetadata(
        name=name,
        description="Pairs of texts with how similar they are in meaning, made by stscurate.",
        reference=None,
        dataset={"path": str(folder), "revision": fingerprint(folder / "data" / "pairs")},
        type="STS",
        category="t2t",
        modalities=["text"],
        eval_splits=[split],
        eval_langs=[code],
        main_score="cosine_spearman",
    )

    class PublishedPairs(AbsTaskSTS):
        """The rows of the published split."""

        min_score = 0
        max_score = 1

        def load_data(self, *args: Any, **kwargs: Any) -> None:
            """Read the files; nothing is asked of the Hub."""
            if not self.data_loaded:
                rows = pa.concat_tables(pq.read_table(path, partitioning=None) for path in files)
                self.dataset = DatasetDict({split: Dataset.from_dict(rows.to_pydict())})
                self.data_loaded = True

    PublishedPairs.metadata = metadata
    return PublishedPairs()
