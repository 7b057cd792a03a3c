"""The commands that take a run or a model to others: publish, publish-model."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stscurate.cli.console import Console, session
from stscurate.cli.options import Json, Quiet, Yes
from stscurate.cli.review import draw_gates, draw_review
from stscurate.wording import counted

if TYPE_CHECKING:
    from stscurate.publishing.delivery import Delivered
    from stscurate.publishing.outgoing import Outgoing
    from stscurate.publishing.preview import Preview
    from stscurate.publishing.push import Options
    from stscurate.services.hub import HubRepository

Public = Annotated[
    bool, typer.Option("--public", help="Make a new repository public, and push to a public one; private by default.")
]
Direct = Annotated[
    bool,
    typer.Option("--direct", help="Write to a repository that holds something; by default a pull request is opened."),
]
Tag = Annotated[str | None, typer.Option(help="Tag to set once all was read back, as in v1.0; none by default.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what each gate finds and which files would change.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("publish")(publish)
    app.command("publish-model")(publish_model)


def publish(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="Run that has pairs.")],
    repository: Annotated[
        str | None, typer.Argument(metavar="[OWNER/NAME]", help="Data set on the Hub to push to; or give --to.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder to write, with Parquet splits and the card; nothing is sent.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Name on the card; the run's name by default.")] = None,
    licence: Annotated[
        str | None, typer.Option(help="Licence of the set (SPDX), where the rows don't name one.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="Language code, repeatable; en by default.")
    ] = None,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="GATE", help="Gate to pass although it found something.")
    ] = None,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts", help="Publish the texts of GitHub issues too, not only ids, labels and hashes to fetch them by."
        ),
    ] = False,
    croissant: Annotated[
        bool, typer.Option("--croissant", help="Describe the set in Croissant JSON-LD as well (croissant.json).")
    ] = False,
    public: Public = False,
    direct: Direct = False,
    tag: Tag = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Take a run to the Hub, behind gates, with its card: one commit, read back and compared; or write a folder."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.errors import InputError
        from stscurate.publishing import publish_folder, review
        from stscurate.publishing.delivery import check_name
        from stscurate.publishing.push import published_matter
        from stscurate.store import Run

        if (to is None) == (repository is None):
            raise InputError("Say where to publish: OWNER/NAME on the Hub, or --to FOLDER (one of the two).")
        if to is not None and (public or direct or tag):
            raise InputError("--public, --direct and --tag are for the Hub: name a repository, OWNER/NAME.")
        if repository is not None:
            check_name(repository)
        given: dict[str, Any] = {"title": title, "licence": licence, "texts": texts}
        given |= {"language": tuple(language or ["en"]), "accept": tuple(accept or [])}
        with Run.open(run_folder, replace=yes, new=False) as opened:
            # what was made for the Hub is no result to keep: the difference that counts is the one to the repository
            folder = to or opened.folder / "hub" / str(repository)
            if repository is not None:
                given["before"] = partial(published_matter, _repository(repository, "dataset", dry_run=dry_run))
            if dry_run:
                found = review(opened, folder, **given)
                if repository is None:
                    draw_review(console, found)
                    return
                draw_gates(console, found)
                if found.refused:
                    return
            given |= {"croissant": croissant, "replace": yes or repository is not None, "progress": console.progress}
            entry = publish_folder(opened, folder, **given)
            console.stage(entry)
        if repository is not None:
            from stscurate.publishing.outgoing import read_folder

            title = f"Publish {entry.key['settings']['title']}"
            options = _options(title, direct=direct, public=public, schema="schema" in (accept or []))
            _to_hub(console, "dataset", repository, read_folder(folder), folder, options, tag, dry_run, yes)


def _options(title: str, *, direct: bool, public: bool, schema: bool = False) -> "Options":
    from stscurate.publishing.push import Options

    return Options(title, direct=direct, public=public, schema=schema)


def _repository(name: str, kind: str, *, dry_run: bool) -> "HubRepository":
    """The repository; without a token there is nothing to do but to look."""
    from stscurate.publishing.delivery import check_token
    from stscurate.services.hub import HubRepository

    repository = HubRepository(name, kind)
    if not dry_run:
        check_token(repository)
    return repository


def _to_hub(
    console: Console,
    kind: str,
    name: str,
    outgoing: "Outgoing",
    folder: Path,
    options: "Options",
    tag: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    from stscurate.publishing.delivery import deliver
    from stscurate.publishing.preview import preview

    repository = _repository(name, kind, dry_run=dry_run)
    if dry_run:
        _draw_preview(console, repository.address, preview(repository, outgoing), public=options.public)
        return
    confirm = _confirm(console, yes=yes or options.public)
    found = deliver(repository, outgoing, folder, options, tag=tag, confirm=confirm, progress=console.progress)
    _draw_delivered(console, found, tag)


def _confirm(console: Console, *, yes: bool) -> Callable[[str], bool]:
    """Says what everybody will be able to read, and asks where somebody sits at a terminal."""

    def confirm(what: str) -> bool:
        console.say(what)
        return yes or (sys.stdin.isatty() and typer.confirm("Go on?", err=True))

    return confirm


def _draw_preview(console: Console, address: str, found: "Preview", *, public: bool) -> None:
    if not found.exists:
        console.say(f"{address} isn't there: it would be made, {'public' if public else 'private'}.")
    else:
        console.say(f"{address} is there, and {'private' if found.private else 'public'}.")
    if not found.difference:
        console.say("It holds all of this already: nothing would be sent.")
    console.table("files_to_change", found.rows(), title="files that would change")
    for change in found.changes:
        console.say(change)
    console.keep(address=address, exists=found.exists, private=found.private, changes=found.changes)


def _draw_delivered(console: Console, found: "Delivered", tag: str | None) -> None:
    if not found.fresh:
        waits = "waits to be merged" if found.pull_request else "is there, unchanged"
        console.say(f"Nothing to do: all of it {waits}, commit {found.commit}, in {found.place}")
    elif found.sent is None:
        console.say(f"All of it was there already, commit {found.commit}, in {found.place}")
    else:
        sent = found.sent
        console.say(
            f"pushed: {counted(len(sent.added), 'file')} added, {len(sent.changed):,} changed, {len(sent.removed):,} "
            "removed, "
            f"commit {found.commit}, in {found.place}"
        )
    if found.pull_request and found.sent:
        console.say("It waits there as a pull request for somebody to merge it; with --direct it would be on main.")
    if found.fresh:
        console.say(f"read back by that commit and compared: every file's checksum, {counted(found.rows, 'row')}")
    if found.tag:
        console.say(f"tagged {found.tag}")
    elif tag:
        console.say(f"Not tagged {tag} yet: merge the pull request, then run the same command again.")
    told = {"address": found.address, "place": found.place, "commit": found.commit, "tag": found.tag}
    counts = {name: len(getattr(found.sent, name)) if found.sent else 0 for name in ("added", "changed", "removed")}
    console.keep(
        **told, pull_request=found.pull_request, rows=found.rows, created=found.created, fresh=found.fresh, files=counts
    )


def publish_model(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Trained model, with its card (README.md).")],
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Model on the Hub to push to.")],
    public: Public = False,
    direct: Direct = False,
    tag: Tag = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
) -> None:
    """Take a trained model to the Hub, as publish does a run: its weights, settings and card, and no other file."""
    with session(as_json=as_json, quiet=quiet) as console:
        from stscurate.publishing.delivery import check_name
        from stscurate.publishing.model import read_model

        check_name(repository)
        outgoing, left = read_model(folder, repository)
        if left:
            console.say(f"stays here: {', '.join(left)}")
        console.keep(left=left)
        options = _options(f"Publish {folder.resolve().name}", direct=direct, public=public)
        _to_hub(console, "model", repository, outgoing, folder, options, tag, dry_run, yes)
