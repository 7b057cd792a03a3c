"""The Hugging Face Hub: files of its data sets by name, and a repository by the few requests that a push needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging import ERROR
from pathlib import Path
from typing import Any, TypeVar

from stscurate.errors import InputError, ServiceError
from stscurate.services.hub_errors import HubMissingError, translated

T = TypeVar("T")
MAIN = "main"


@dataclass(frozen=True)
class RemoteFile:
    """A file of a commit: bytes, its git hash, and its SHA-256 where it stands in LFS."""

    size: int
    blob_id: str
    sha256: str | None


@dataclass(frozen=True)
class Head:
    """A revision as it stands: its commit, whether the repository is private, and its files by path."""

    commit: str
    private: bool
    files: Mapping[str, RemoteFile]


@dataclass(frozen=True)
class Committed:
    """A commit that was made, and the number of the pull request that it opened."""

    commit: str
    pull_request: int | None


class HubRepository:
    """A model or a data set ("model", "dataset") on the Hub, whether it is there already or not.

    Each method is one request, but for `commit`, which uploads. Everything raises what `hub_errors.translated` says:
    InputError for what the user has to mend, HubMovedError where somebody else was quicker, HubBusyError where the
    same may go well later, ServiceError for the rest. No message holds the token.
    """

    def __init__(self, name: str, kind: str, *, endpoint: str | None = None, token: str | None = None):
        """endpoint: HF_ENDPOINT, or huggingface.co; token: HF_TOKEN, or what `hf auth login` has kept."""
        from huggingface_hub import HfApi, constants, get_token
        from huggingface_hub.utils import logging
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()  # --quiet and --json promise that nothing else is printed
        logging.set_verbosity(ERROR)  # its warnings print addresses with signatures in them
        self.name = name
        self.kind = kind
        self.endpoint: str = endpoint or constants.ENDPOINT
        self._token = token or get_token()
        self._api = HfApi(endpoint=self.endpoint, token=self._token, library_name="stscurate")
        self._reached = False

    @property
    def token(self) -> str | None:
        """Whoever is pushing. Never to be written down."""
        return self._token

    @property
    def address(self) -> str:
        """Where people look at it."""
        return f"{self.endpoint}/{'datasets/' if self.kind == 'dataset' else ''}{self.name}"

    @property
    def key(self) -> str:
        """What it is known by beside what was pushed there."""
        return f"{self.kind} {self.name} at {self.endpoint}"

    def head(self, revision: str = MAIN, *, kind: str | None = None) -> Head | None:
        """The revision with its files and their hashes; None where there is no such repository, or none we may see."""
        try:
            info: Any = self._asked(
                "read", self._api.repo_info, self.name, repo_type=kind or self.kind, revision=revision,
                files_metadata=True,
            )  # fmt: skip
        except HubMissingError:
            return None
        files = {
            found.rfilename: RemoteFile(found.size, found.blob_id, found.lfs.sha256 if found.lfs else None)
            for found in info.siblings
        }
        return Head(info.sha, bool(info.private), files)

    def read(self, path: str, commit: str) -> bytes:
        """A small file's content, past every cache."""
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import get_session, hf_raise_for_status

        def ask() -> bytes:
            address = hf_hub_url(self.name, path, repo_type=self.kind, revision=commit, endpoint=self.endpoint)
            response = get_session().get(address, headers=build_hf_headers(token=self._token or False))
            hf_raise_for_status(response)
            return bytes(response.content)

        return self._asked("read", ask)

    def create(self, *, private: bool) -> None:
        """Make the repository. HubMovedError where it is there by now."""
        self._asked("create", self._api.create_repo, self.name, repo_type=self.kind, private=private)

    def commit(
        self,
        additions: Mapping[str, Path | bytes],
        deletions: Sequence[str],
        *,
        parent: str,
        title: str,
        revision: str = MAIN,
        pull_request: bool = False,
    ) -> Committed:
        """One commit upon `parent` with all of that, or nothing; as a new pull request where that is asked for."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        adding = [CommitOperationAdd(path, source) for path, source in additions.items()]
        made = self._asked(
            "write to", self._api.create_commit, self.name,
            [*adding, *(CommitOperationDelete(path, is_folder=False) for path in deletions)],
            commit_message=title, repo_type=self.kind, revision=revision, create_pr=pull_request, parent_commit=parent,
        )  # fmt: skip
        number = made.pr_url.rstrip("/").rpartition("/")[2] if made.pr_url else ""
        return Committed(made.oid, int(number) if number else None)

    def pull_requests(self) -> dict[int, str]:
        """Number and title of those that are open."""

        def ask() -> dict[int, str]:
            found = self._api.get_repo_discussions(
                self.name, repo_type=self.kind, discussion_type="pull_request", discussion_status="open"
            )
            return {item.num: item.title for item in found}

        return self._asked("read", ask)

    def tags(self) -> dict[str, str]:
        """Tag -> commit."""
        refs = self._asked("read", self._api.list_repo_refs, self.name, repo_type=self.kind)
        return {found.name: found.target_commit for found in refs.tags}

    def tag(self, name: str, commit: str) -> None:
        """Give the commit a name. HubMovedError where the tag is there by now."""
        self._asked("tag", self._api.create_tag, self.name, repo_type=self.kind, tag=name, revision=commit)

    def _asked(self, verb: str, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        try:
            found = call(*arguments, **options)
        except Exception as error:  # the client raises whatever its transport does
            what = f"{verb} {self.name}"
            told = translated(error, what, self.endpoint, token=self._token, reached=self._reached)
            self._reached = self._reached or isinstance(told, HubMissingError)
            raise told from None
        self._reached = True
        return found


def download(name: str, kind: str, **patterns: Any) -> Path:
    """The snapshot of "owner/name" or "owner/name@revision" in the Hub's own cache.

    patterns: of `huggingface_hub.snapshot_download`. Raises what the client does. Where the Hub can't be asked, the
    cache will do; but where it says that there is no such repository (any more), the cache isn't believed.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # --quiet and --json promise that nothing else is printed
    repository, _, revision = name.partition("@")
    commit: str | None = revision or None
    try:
        commit = HfApi().repo_info(repository, repo_type=kind, revision=commit).sha
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError):
        raise
    except Exception:  # noqa: S110 - away, offline or busy, which the next call tells if the cache doesn't help
        pass
    return Path(snapshot_download(repository, repo_type=kind, revision=commit, **patterns))


def download_dataset(name: str, files: Sequence[str]) -> Path:
    """A local folder with those files of the set "owner/name" or "owner/name@revision" that fit the patterns.

    InputError where there is no such set; ServiceError where the Hub can't be reached to ask.
    """
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        return download(name, "dataset", allow_patterns=list(files))
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError):
        raise InputError(
            f"There is no data set {name}: no such folder here, and none on the Hub (or it is private and needs a "
            "token). Check the name."
        ) from None
    except Exception as error:  # the client raises whatever its transport does
        raise away(name, "data set", error) from None


def away(name: str, what: str, error: Exception) -> ServiceError:
    """What is told where the Hub can't be asked for a `what` ("model", "data set"), and its cache holds none."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        why, mend = "HF_HUB_OFFLINE is set, and nothing was kept", "unset HF_HUB_OFFLINE"
    else:
        why, mend = type(error).__name__, "the connection and HF_ENDPOINT"
    return ServiceError(
        f"There is no folder {name} here, and the Hub can't be asked for a {what} of that name ({why}). "
        f"Check the name, or {mend}."
    )
