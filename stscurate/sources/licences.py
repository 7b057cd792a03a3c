"""The stage `repositories`: under which licence the code of each repository is, whose issues a run holds."""

from collections.abc import Callable, Mapping, Sequence

from stscurate.disk import fingerprint
from stscurate.manifest import Entry
from stscurate.records import Tally, from_rows
from stscurate.resources import definition
from stscurate.sources.lists import Listed, read_repositories
from stscurate.store import Run

Asked = Callable[[Sequence[str]], Mapping[str, str | None]]


def note_licences(run: Run, *, listed: Sequence[Listed] = (), ask: Asked | None = None) -> Entry:
    """Make the table `repositories` of the run's issues: the list's licence, else what `ask` says of it.

    listed: goes before the list that comes with this package. ask: gives the SPDX identifiers of repositories, None
    where there is none; it is called once, for those that no list names. The licence is the repository's: it needn't
    cover what people wrote in its issues.
    """
    own = {row.name.lower(): row.licence for row in listed if row.licence}
    packaged = definition("github-issues/repositories.toml")
    known = {row.name.lower(): row.licence for row in read_repositories(packaged, reserves=True)} | own
    stage = run.stage(
        "repositories",
        tables=["repositories"],
        inputs={"issues": run.fingerprint("issues"), packaged.name: fingerprint(packaged)},
        settings={"listed": own, "asked": ask is not None},
    )
    if stage.entry:
        return stage.entry
    names = sorted(set(run.table("issues")["repository"].to_pylist()))
    unknown = [name for name in names if name.lower() not in known]
    asked = ask(unknown) if ask and unknown else {}
    tally = Tally(rows_in=len(names))
    rows = []
    for name in names:
        licence = known.get(name.lower())
        source = "list" if licence else "github" if asked.get(name) else None
        tally.count("licence_from", source or "unknown")
        rows.append({"repository": name, "licence": licence or asked.get(name), "licence_from": source})
    stage.write(0, {"repositories": from_rows(rows, "repositories")}, tally)
    return stage.commit()
