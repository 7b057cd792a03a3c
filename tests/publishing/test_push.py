import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stscurate.errors import InputError, ServiceError
from stscurate.publishing.checksums import CARD, CHECKSUMS
from stscurate.publishing.delivery import Delivered, check_name
from stscurate.services.hub import HubRepository
from tests.local_hub import READER, STRANGER, WRITER, LocalHub, drop, lose, meanwhile, status
from tests.publishing.hubs import (
    UPLOADS_WARN,
    Killed,
    Readback,
    as_pushed,
    contents,
    deadly_transport,
    made_of,
    pushed,
    repository,
    serving,
)

pytestmark = UPLOADS_WARN
FILES = {
    "data/pairs/train-00000-of-00001.parquet": b"train",
    "data/pairs/test-00000-of-00001.parquet": b"test",
    "card.json": b"{}",
}
OTHER = {**FILES, "data/pairs/train-00000-of-00001.parquet": b"other rows"}
A_COMMIT = "POST .*/commit/"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    with serving(tmp_path / "storage", monkeypatch) as found:
        yield found


def shards(count: int, word: str) -> dict[str, bytes]:
    names = (f"data/pairs/train-{shard:05}-of-{count:05}.parquet" for shard in range(count))
    return {name: f"{word} {name}".encode() for name in names}


def test_a_first_push_makes_a_private_repository_in_one_commit_and_tags_what_was_read_back(
    hub: LocalHub, tmp_path: Path
) -> None:
    read_back = Readback(hub)
    done = pushed(hub, made_of(FILES), tmp_path / "set", tag="v1.0", reload=read_back)
    made = hub.dataset("me/set")
    assert made.private
    assert contents(hub) == as_pushed(made_of(FILES))
    assert [commit.title for commit in made.history()][1:] == ["initial commit"]
    assert read_back.commits == [made.head.oid]
    assert made.tags == {"v1.0": made.head.oid}
    assert done == Delivered(
        f"{hub.address}/datasets/me/set", made.head.oid, None, "v1.0", 4, created=True, sent=done.sent
    )
    assert done.sent
    assert [file.path for file in done.sent.added] == sorted([*FILES, CARD, CHECKSUMS])


def test_the_same_again_is_one_read_and_no_write(hub: LocalHub, tmp_path: Path) -> None:
    first = pushed(hub, made_of(FILES), tmp_path / "set", tag="v1.0")
    hub.log.clear()
    again = pushed(hub, made_of(FILES), tmp_path / "set", tag="v1.0")
    assert (again.fresh, again.commit, again.tag) == (False, first.commit, "v1.0")
    assert [(asked.method, asked.writes) for asked in hub.log] == [("GET", False)]


def test_without_what_was_kept_here_the_same_again_writes_nothing_either(hub: LocalHub, tmp_path: Path) -> None:
    first = pushed(hub, made_of(FILES), tmp_path / "set")
    hub.log.clear()
    again = pushed(hub, made_of(FILES), tmp_path / "elsewhere")
    assert (again.commit, again.sent) == (first.commit, None)
    assert not [asked for asked in hub.log if asked.writes]


def test_only_what_differs_is_sent_and_only_what_was_ours_is_deleted(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set")
    hub.dataset("me/set").put({"LICENSE": b"theirs", "data/extra/train.csv": b"theirs"})
    hub.log.clear()
    changed = made_of({path: data for path, data in OTHER.items() if path != "card.json"})
    done = pushed(hub, changed, tmp_path / "set", direct=True)
    assert contents(hub) == {**as_pushed(changed), "LICENSE": b"theirs", "data/extra/train.csv": b"theirs"}
    assert done.sent
    assert [file.path for file in done.sent.changed] == [CHECKSUMS, "data/pairs/train-00000-of-00001.parquet"]
    assert (done.sent.added, done.sent.removed) == ([], ["card.json"])
    assert len([line for line in hub.lines() if line.startswith("PUT")]) == 1


def test_60_shards_give_way_to_10(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(shards(60, "first")), tmp_path / "set")
    hub.dataset("me/set").put({"data/pairs/README": b"theirs"})
    second = made_of(shards(10, "second"))
    done = pushed(hub, second, tmp_path / "set", direct=True)
    assert done.sent
    assert (len(done.sent.added), len(done.sent.removed)) == (10, 60)
    assert contents(hub) == {**as_pushed(second), "data/pairs/README": b"theirs"}
    assert len(hub.dataset("me/set").history()) == 4  # the Hub's own, the first push, theirs, the second push


def test_122_files_come_in_one_pull_request_of_one_commit(hub: LocalHub, tmp_path: Path) -> None:
    hub.create("dataset", "me/set").put({"notes.txt": b"there before"})
    outgoing = made_of(shards(120, "many"))
    done = pushed(hub, outgoing, tmp_path / "set", confirm=lambda what: True)
    found = hub.dataset("me/set")
    assert (done.pull_request, len(found.pulls)) == (1, 1)
    assert len(outgoing.files) + 1 == 122
    assert found.commits[done.commit].parent == found.head.oid
    assert contents(hub, done.commit) == {**as_pushed(outgoing), "notes.txt": b"there before"}
    assert contents(hub) == {"notes.txt": b"there before"}


def test_a_pull_request_is_found_again_and_tagged_once_it_is_merged(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set")
    opened = pushed(hub, made_of(OTHER), tmp_path / "set", tag="v2.0")
    assert (opened.pull_request, opened.tag, hub.dataset("me/set").tags) == (1, None, {})
    hub.log.clear()
    again = pushed(hub, made_of(OTHER), tmp_path / "set", tag="v2.0")
    assert (again.fresh, again.pull_request) == (False, 1)
    assert [asked.writes for asked in hub.log] == [False, False]
    other_machine = pushed(hub, made_of(OTHER), tmp_path / "elsewhere")
    assert (other_machine.pull_request, other_machine.commit) == (1, opened.commit)
    merged = hub.dataset("me/set").merge(1)
    tagged = pushed(hub, made_of(OTHER), tmp_path / "set", tag="v2.0")
    assert (tagged.commit, hub.dataset("me/set").tags) == (merged.oid, {"v2.0": merged.oid})
    assert len(hub.dataset("me/set").pulls) == 1


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (status(429, retry_after=7), [7.0]),
        (status(429), [1.0]),
        (status(503), [1.0]),
        (status(409), []),
        (status(412), []),
        (drop(), [1.0]),
        (lose(), [1.0]),
    ],
    ids=["429 with a time", "429", "503", "409", "412", "dropped", "lost answer"],
)
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "pull request"])
def test_a_commit_that_goes_wrong_once_is_there_once(
    hub: LocalHub, tmp_path: Path, fault: object, waits: list[float], direct: bool
) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set")
    before = hub.dataset("me/set").head.oid
    hub.fail(A_COMMIT, fault)  # type: ignore[arg-type]
    waited: list[float] = []
    done = pushed(hub, made_of(OTHER), tmp_path / "set", direct=direct, wait=waited.append)
    found = hub.dataset("me/set")
    assert waited == waits
    assert contents(hub, done.commit) == as_pushed(made_of(OTHER))
    assert found.commits[done.commit].parent == before
    assert len(found.pulls) == (0 if direct else 1)
    assert len(found.commits) == 3


def test_a_rivals_commit_in_between_is_kept(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set")
    hub.fail(A_COMMIT, meanwhile(lambda: hub.dataset("me/set").put({"theirs.txt": b"theirs"})))
    pushed(hub, made_of(OTHER), tmp_path / "set", direct=True)
    assert [asked.status for asked in hub.log if "/commit/" in asked.path][-2:] == [412, 200]
    assert contents(hub) == {**as_pushed(made_of(OTHER)), "theirs.txt": b"theirs"}


def test_of_four_pushes_at_once_three_see_the_conflict_and_all_end_right(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set")
    sets = [made_of({**FILES, "data/pairs/test-00000-of-00001.parquet": b"test %d" % n}) for n in range(4)]
    together = threading.Barrier(4)
    hub.fail(A_COMMIT, *[meanwhile(together.wait)] * 4)
    done: dict[int, Delivered] = {}

    def one(number: int) -> None:
        done[number] = pushed(hub, sets[number], tmp_path / f"set{number}", direct=True)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    commits = [asked.status for asked in hub.log if "/commit/" in asked.path][1:]
    assert sorted(commits[:4]) == [200, 412, 412, 412]
    assert commits.count(200) == 4
    assert {number: contents(hub, found.commit) for number, found in done.items()} == {
        number: as_pushed(found) for number, found in enumerate(sets)
    }
    assert len(hub.dataset("me/set").history()) == 6


def test_killed_at_any_request_it_goes_on_and_ends_the_same(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(shards(4, "unbroken")), tmp_path / "set", to=repository(hub, "me/unbroken"), tag="v1")
    requests = len(hub.log)
    assert 10 < requests <= 30
    with deadly_transport() as transport:
        for answered, number in itertools.product((False, True), range(1, requests + 1)):
            name = f"me/set{number}-{answered}"
            outgoing = made_of(shards(4, name))  # each its own: what the Hub has of another isn't sent again
            transport.strike(number, answered=answered)
            with pytest.raises(Killed):
                pushed(hub, outgoing, tmp_path / name, to=repository(hub, name), tag="v1")
            transport.strike(float("inf"))
            done = pushed(hub, outgoing, tmp_path / name, to=repository(hub, name), tag="v1")
            made = hub.dataset(name)
            assert contents(hub, name=name) == as_pushed(outgoing)
            assert made.private
            assert len(made.history()) == 2, name  # the Hub's own, and one of ours
            assert (made.tags, made.pulls) == ({"v1": done.commit}, [])
            assert made.head.oid == done.commit


def test_a_hub_that_keeps_failing_is_a_failure_with_the_mend(hub: LocalHub, tmp_path: Path) -> None:
    waited: list[float] = []
    hub.fail("GET .*blobs", *[status(503)] * 8)
    with pytest.raises(ServiceError, match=r"the Hub failed \(status 503\)\. Run the same command later\."):
        pushed(hub, made_of(FILES), tmp_path / "set", wait=waited.append)
    assert waited == [1, 2, 4, 8, 16, 32, 64]


def test_a_deleted_repository_is_made_anew_and_not_believed_to_be_there(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set")
    del hub.repositories["dataset", "me/set"]
    again = pushed(hub, made_of(FILES), tmp_path / "set")
    assert again.created
    assert contents(hub) == as_pushed(made_of(FILES))


def test_what_isnt_what_was_sent_is_not_tagged(hub: LocalHub, tmp_path: Path) -> None:
    def differs(*arguments: object) -> int:
        raise ServiceError("it differs")

    with pytest.raises(ServiceError, match="it differs"):
        pushed(hub, made_of(FILES), tmp_path / "set", tag="v1", reload=differs)
    assert hub.dataset("me/set").tags == {}
    read_back = Readback(hub)
    pushed(hub, made_of(FILES), tmp_path / "set", tag="v1", reload=read_back)
    assert len(read_back.commits) == 1  # it is read back again, since it never was found right


def test_a_tag_of_another_content_is_refused_before_anything_is_sent(hub: LocalHub, tmp_path: Path) -> None:
    pushed(hub, made_of(FILES), tmp_path / "set", tag="v1")
    hub.log.clear()
    with pytest.raises(InputError, match="has a tag v1 already, for another content"):
        pushed(hub, made_of(OTHER), tmp_path / "set", tag="v1", direct=True)
    assert not [asked for asked in hub.log if asked.writes]


def test_a_tags_answer_that_is_lost_is_looked_up(hub: LocalHub, tmp_path: Path) -> None:
    hub.fail("POST .*/tag/", lose())
    done = pushed(hub, made_of(FILES), tmp_path / "set", tag="v1")
    assert hub.dataset("me/set").tags == {"v1": done.commit}


def test_nothing_goes_where_everybody_reads_unless_that_is_said(hub: LocalHub, tmp_path: Path) -> None:
    asked: list[str] = []

    def no(what: str) -> bool:
        asked.append(what)
        return False

    hub.create("dataset", "me/set")
    with pytest.raises(InputError, match=r"is public: everybody can read .* Nothing was pushed: say --public"):
        pushed(hub, made_of(FILES), tmp_path / "set", confirm=no)
    assert contents(hub) == {}
    with pytest.raises(InputError, match="will be public"):
        pushed(hub, made_of(FILES), tmp_path / "set", to=repository(hub, "me/new"), public=True, confirm=no)
    assert ("dataset", "me/new") not in hub.repositories
    pushed(hub, made_of(FILES), tmp_path / "set", confirm=lambda what: True)
    assert contents(hub) == as_pushed(made_of(FILES))
    pushed(hub, made_of(FILES), tmp_path / "set", confirm=no)  # nothing is sent, so there is nothing to ask
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("name", "token", "told"),
    [
        ("them/set", WRITER, "Can't create them/set: the token has no right to"),
        ("me/set", READER, "Can't create me/set: the token has no right to"),
        ("me/set", "hf_" + "x" * 34, "Can't read me/set: the Hub doesn't take this token"),
        ("me/model", WRITER, "me/model is a model, and you publish a data set: name another"),
    ],
)
def test_mistakes_are_told_with_the_mend(hub: LocalHub, tmp_path: Path, name: str, token: str, told: str) -> None:
    hub.create("model", "me/model")
    with pytest.raises(InputError) as problem:
        pushed(hub, made_of(FILES), tmp_path / "set", to=repository(hub, name, token=token))
    assert str(problem.value).startswith(told)
    assert token not in str(problem.value)


def test_whoever_may_only_read_may_still_open_a_pull_request(hub: LocalHub, tmp_path: Path) -> None:
    hub.create("dataset", "me/set").put({"a.txt": b"a"})
    to = repository(hub, token=STRANGER)
    with pytest.raises(InputError, match="Can't write to me/set: the token has no right to"):
        pushed(hub, made_of(FILES), tmp_path / "set", to=to, direct=True, confirm=lambda what: True)
    done = pushed(hub, made_of(FILES), tmp_path / "set", to=to, confirm=lambda what: True)
    assert (done.pull_request, hub.dataset("me/set").pulls[0].author) == (1, "stranger")


@pytest.mark.parametrize("name", ["set", "a/b/c", "datasets/me/set"])
def test_a_name_without_an_owner_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is no repository: name it as OWNER/NAME"):
        check_name(name)


@pytest.mark.parametrize("name", ["me/se t", "/set", "me/", "me/.."])
def test_a_name_that_the_hub_would_refuse_is_refused_here(name: str) -> None:
    with pytest.raises(InputError, match="can't be the name of a repository"):
        check_name(name)


def test_a_hub_that_isnt_there_is_told_at_once(hub: LocalHub, tmp_path: Path) -> None:
    away = HubRepository("me/set", "dataset", endpoint="http://127.0.0.1:9", token=WRITER)
    with pytest.raises(ServiceError, match=r"The Hub at http://127.0.0.1:9 can't be reached: check the connection and"):
        pushed(hub, made_of(FILES), tmp_path / "set", to=away)


def test_no_message_holds_the_token_even_where_the_hub_says_it(hub: LocalHub, tmp_path: Path) -> None:
    hub.fail("POST .*/create", status(400, message=f"bad token {WRITER}"))
    with pytest.raises(ServiceError, match=r"refuses it with status 400 \(bad token \*\*\*\)"):
        pushed(hub, made_of(FILES), tmp_path / "set")
