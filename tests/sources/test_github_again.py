"""A second collection asks for what has changed alone, and ends at the bytes of a first one of the same state."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stscurate.errors import ServiceError
from stscurate.sources.github import make_plans
from stscurate.sources.lists import Listed
from tests.local_github import LocalGitHub, faults
from tests.local_github.invented import make_repository
from tests.local_github.limits import FakeClock
from tests.sources.collecting import INKPOT, LABELS, MADE, TIDEPOOL, client, collected, digest, issues_of, links_of

pytestmark = pytest.mark.usefixtures("github_schema")

SIZES = {"search": (700, 0.04), "sweep": (150, 0.4)}  # issues, duplicate rate


@pytest.fixture(params=["search", "sweep"])
def hub_of(request: pytest.FixtureRequest) -> Any:
    issues, rate = SIZES[request.param]
    made = make_repository(MADE, issues=issues, duplicate_rate=rate, seed=1)
    with LocalGitHub(clock=FakeClock()) as hub:
        hub.seed(made.issues, marks=made.marks)
        with client(hub) as github:
            assert make_plans(github, [Listed(MADE, LABELS)], negatives=1)[0].way == request.param
        hub.log.clear()
        yield hub, made


def assert_same_as_fresh(hub: LocalGitHub, folder: Path, number: int, **options: Any) -> tuple[int, int]:
    """Collect again, and in another folder from nothing; the points of both."""
    before = hub.points()
    entry = collected(hub, folder / "run", [MADE], again=number, **options)
    between = hub.points()
    fresh = collected(hub, folder / f"fresh-{number}", [MADE], **options)
    assert digest(folder / "run")[:2] == digest(folder / f"fresh-{number}")[:2]
    assert entry.tally.as_dict() == fresh.tally.as_dict()
    return between - before, hub.points() - between


@pytest.mark.parametrize(
    ("way", "issues", "rate", "points", "again"),
    [("search", 5_000, 0.05, 32, 14), ("sweep", 1_500, 0.5, 47, 12), ("sweep", 90, 0.1, 5, 5)],
)
def test_what_is_unchanged_costs_few_requests(
    tmp_path: Path, way: str, issues: int, rate: float, points: int, again: int
) -> None:
    made = make_repository(MADE, issues=issues, duplicate_rate=rate)
    with LocalGitHub(clock=FakeClock()) as hub:
        hub.seed(made.issues, marks=made.marks)
        collected(hub, tmp_path / "run", [MADE])
        assert hub.points() == points
        before = digest(tmp_path / "run")
        with client(hub) as github:
            assert make_plans(github, [Listed(MADE, LABELS)], negatives=1)[0].way == way
        hub.log.clear()
        collected(hub, tmp_path / "run", [MADE], again=1)
        assert digest(tmp_path / "run")[:2] == before[:2]
        assert hub.points() == hub.requests() == again


@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_meanwhile_ends_at_the_bytes_of_a_fresh_collection(
    hub_of: tuple[LocalGitHub, Any], tmp_path: Path, seed: int
) -> None:
    hub, made = hub_of
    rng = random.Random(seed)
    collected(hub, tmp_path / "run", [MADE])
    for number in range(1, 3):
        for _ in range(rng.choice((1, 4, 12))):
            happen(hub, made, rng)
        hub.clock.sleep(rng.choice((0, 1, 30, 7_200)))  # type: ignore[attr-defined]
        again, fresh = assert_same_as_fresh(hub, tmp_path, number)
        assert again <= fresh + 3  # so small a repository has little to save


def happen(hub: LocalGitHub, made: Any, rng: random.Random) -> None:  # noqa: C901 - a case each
    """One thing that may happen to a tracker, now or a while later."""
    store = hub.store
    hub.clock.sleep(rng.choice((0, 0, 40, 5_000)))  # type: ignore[attr-defined]
    alive = sorted(store.repositories[MADE].issues)
    place = (MADE, rng.choice(alive))
    duplicates = [duplicate for duplicate in made.duplicates if duplicate[1] in alive]
    duplicate = rng.choice(duplicates)
    original = made.duplicates[duplicate]
    marked = duplicate in made.marks and original[1] in alive
    at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randint(0, 10**6))
    match rng.randrange(12):
        case 0:
            store.edit(rng.choice((place, duplicate)), title="Another title", body="Other words")
        case 1:
            store.delete(rng.choice((place, duplicate)))
        case 2 if original[1] in alive:
            store.delete(original)
        case 3:
            store.insert(MADE, title="New", labels=rng.choice(([], ["duplicate"])))
        case 4 if marked:  # which needn't show in the last change
            store.unmark_duplicate(duplicate, original, at=at)
        case 5 if original[1] in alive:
            store.mark_duplicate(duplicate, original, at=rng.choice((None, at)))
        case 6:
            store.comment(place, f"Duplicate of #{rng.choice(alive)}", association="MEMBER")
        case 7:
            store.transfer(rng.choice((place, duplicate)), "made/elsewhere")
        case 8:
            store.edit(duplicate, labels=[], reason="completed")
        case 9:
            store.close(place, reason=rng.choice(("duplicate", "completed")))
        case 10:
            store.convert_to_discussion(place)
        case 11:
            store.reopen(duplicate)


def test_an_edit_within_the_second_in_which_an_issue_was_read_is_seen(
    hub_of: tuple[LocalGitHub, Any], tmp_path: Path
) -> None:
    hub, made = hub_of
    place = next(duplicate for duplicate, kind in made.shown_by.items() if kind == "reason")
    hub.store.edit(place, title="Before")
    collected(hub, tmp_path / "run", [MADE])
    at = hub.store.issue(place).updated_at
    hub.store.edit(place, title="After")
    hub.store.edit(place, updated_at=at)
    hub.store.issue(place).updated_at = at  # an edit moves it on
    assert_same_as_fresh(hub, tmp_path, 1)
    assert issues_of(tmp_path / "run")[f"{MADE}#{place[1]}"]["title"] == "After"


def test_few_issues_of_many_are_followed_too(hub_of: tuple[LocalGitHub, Any], tmp_path: Path) -> None:
    hub, _ = hub_of
    collected(hub, tmp_path / "run", [MADE], max_issues=60)
    hub.store.delete((MADE, 2))
    hub.store.edit((MADE, 3), title="Edited")
    assert_same_as_fresh(hub, tmp_path, 1, max_issues=60)


def test_the_settings_of_a_second_collection_may_differ(hub_of: tuple[LocalGitHub, Any], tmp_path: Path) -> None:
    hub, _ = hub_of
    collected(hub, tmp_path / "run", [MADE], max_issues=30)
    assert_same_as_fresh(hub, tmp_path, 1)
    assert_same_as_fresh(hub, tmp_path, 2, negatives=3, max_issues=100)
    hub.store.edit((MADE, 3), title="Edited")
    assert_same_as_fresh(hub, tmp_path, 3)


def test_a_clock_that_is_wrong_here_or_there_changes_nothing(sample_issues: Path, tmp_path: Path) -> None:
    """What changed is asked for by the stamps of the issues themselves."""
    for skew in (-90_000.0, 90_000.0):
        with LocalGitHub(clock=FakeClock(), skew=skew) as hub:
            hub.seed(sample_issues)
            folder = tmp_path / str(skew)
            collected(hub, folder / "run", [TIDEPOOL])
            hub.store.edit((TIDEPOOL, 4), title="Edited")
            collected(hub, folder / "run", [TIDEPOOL], again=1)
            assert issues_of(folder / "run")[f"{TIDEPOOL}#4"]["title"] == "Edited"
            collected(hub, folder / "fresh", [TIDEPOOL])
            assert digest(folder / "run")[:2] == digest(folder / "fresh")[:2]


def test_long_threads_are_not_read_again(hub: LocalGitHub, tmp_path: Path) -> None:
    for day in range(230):
        hub.store.comment((TIDEPOOL, 4), f"word {day}", at=datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=day))
    hub.store.edit((INKPOT, 6), title="Later")
    hub.store.insert(TIDEPOOL, title="The last change, long after")
    entry = collected(hub, tmp_path / "run", [TIDEPOOL])
    hub.log.clear()
    assert collected(hub, tmp_path / "run", [TIDEPOOL], again=1).tally == entry.tally
    assert hub.requests() == 5  # counting, the schema, what changed: which and how, marks


def test_a_kill_between_two_requests_of_a_second_collection_costs_that_request_alone(
    hub_of: tuple[LocalGitHub, Any], tmp_path: Path
) -> None:
    """As a failure of the server that no try outlasts: what was fetched before is kept all the same."""
    hub, made = hub_of
    collected(hub, tmp_path / "run", [MADE])
    rng = random.Random(5)
    for _ in range(8):
        happen(hub, made, rng)
    hub.log.clear()
    for at in range(1, 40):
        hub.rules.clear()
        hub.fail(faults.limited(429), at=range(2, 99))
        try:
            collected(hub, tmp_path / "run", [MADE], again=1)
            break
        except ServiceError:
            assert sum(asked.fault is None for asked in hub.log) == at
    assert at > 4
    assert len({(asked.query, str(asked.variables)) for asked in hub.log if not asked.fault}) == sum(
        asked.fault is None for asked in hub.log
    )
    hub.rules.clear()
    collected(hub, tmp_path / "fresh", [MADE])
    assert digest(tmp_path / "run")[:2] == digest(tmp_path / "fresh")[:2]
    assert links_of(tmp_path / "run")
