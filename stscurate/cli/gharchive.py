"""The part of `collect-issues` that reads GH Archive, and asks GitHub to confirm what came of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from stscurate.cli.console import Console
from stscurate.cli.github import last_collection
from stscurate.store import Run


def holds_archive(source: Path, kind: Literal["auto", "dump", "gharchive"]) -> bool:
    """Whether --from is to be read as GH Archive."""
    from stscurate.errors import InputError
    from stscurate.sources.gharchive import is_archive, is_mixed

    if kind == "auto" and (both := is_mixed(source)):
        raise InputError(
            f"{source} holds hours of GH Archive ({both[0].name}) and dumps of issues ({both[1].name}): "
            "give each a folder of its own."
        )
    return kind == "gharchive" or (kind == "auto" and is_archive(source))


def check_options(*, archive: bool, workers: int | None, hydrate: bool, refresh: bool) -> None:
    """InputError for an option that has nothing to act on."""
    from stscurate.errors import InputError

    if (hydrate or workers) and not archive:
        raise InputError("--hydrate and --workers are for GH Archive: give its hours with --from.")
    if refresh and archive and not hydrate:
        raise InputError("--refresh asks GitHub, which hours of GH Archive do with --hydrate alone: add it.")


def from_archive(
    console: Console,
    run: Run,
    source: Path,
    *,
    repos: Path | None,
    opt_out: Path | None,
    negatives: float,
    workers: int | None,
    hydrate: bool,
    moved: Mapping[str, str],
    refresh: bool,
) -> None:
    """Collect from hours of GH Archive. refresh: with hydrate, ask GitHub anew after a finished collection."""
    from stscurate.services.answers import Answers
    from stscurate.services.github import GitHub
    from stscurate.services.github_http import github_token
    from stscurate.sources import note_licences
    from stscurate.sources.gharchive import collect_from_archive, read_archive
    from stscurate.sources.github import describe
    from stscurate.sources.lists import OptOut, read_opt_out, read_repositories

    listed = read_repositories(repos) if repos else None
    left_out = read_opt_out(opt_out) if opt_out else OptOut()
    console.stage(
        read_archive(run, source, repositories=listed, opt_out=left_out, workers=workers, progress=console.progress)
    )
    if not hydrate:
        entry = collect_from_archive(run, repositories=listed, opt_out=left_out, moved=moved, progress=console.progress)
        console.stage(entry)
        console.stage(note_licences(run, listed=listed or ()))
        return
    done = run.entries.get("issues")
    last = last_collection(run)
    collection, previous = (str(last + 1), str(last)) if done and refresh else (str(last), None)
    finished = done and "repositories" in run.entries  # it is found without a token
    token = github_token() if refresh or run.replace or not finished else ""
    with (
        Answers(run.folder / "answers.sqlite") as answers,
        GitHub(token, answers=answers, collection=collection, previous=previous) as github,
    ):
        entry = collect_from_archive(
            run,
            repositories=listed,
            opt_out=left_out,
            moved=moved,
            github=github,
            negatives=negatives,
            progress=console.progress,
        )
        console.stage(entry)

        def ask(names: Sequence[str]) -> dict[str, str | None]:
            return {name: found.licence if found else None for name, found in describe(github, names).items()}

        console.stage(note_licences(run, listed=listed or (), ask=ask))
