"""Data sets on the Hugging Face Hub: the few of their files that are asked for, kept in the Hub's own cache."""

from collections.abc import Sequence
from pathlib import Path

from stscurate.errors import InputError, ServiceError


def download_dataset(name: str, files: Sequence[str]) -> Path:
    """A local folder with those files of the set "owner/name" or "owner/name@revision" that fit the patterns.

    InputError where there is no such set; ServiceError where the Hub can't be reached to ask.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # --quiet and --json promise that nothing else is printed
    repository, _, revision = name.partition("@")
    try:
        found = snapshot_download(
            repository, repo_type="dataset", revision=revision or None, allow_patterns=list(files)
        )
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError):
        raise InputError(
            f"There is no data set {name}: no such folder here, and none on the Hub (or it is private and needs a "
            "token). Check the name."
        ) from None
    except Exception as error:  # the client raises whatever its transport does
        raise ServiceError(
            f"There is no folder {name} here, and the Hub can't be asked for a data set of that name "
            f"({type(error).__name__}). Check the name, or the connection and HF_ENDPOINT."
        ) from None
    return Path(found)
