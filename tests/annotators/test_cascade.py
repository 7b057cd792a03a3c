"""Dear annotators that are asked only about what the cheap ones doubt."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.annotators import annotate, plan
from stscurate.annotators.cascade import cascade_of, doubts
from stscurate.annotators.specs import parse_specs
from stscurate.disk import fingerprint
from stscurate.errors import InputError, ServiceError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, digests_of
from stscurate.methods.known_relevance import Relevance
from stscurate.services.encoder import Encoder
from stscurate.store import Run
from stscurate.tables import import_pairs, pairs_source
from tests.annotators.runs import make_pairs, votes_of
from tests.conftest import Command
from tests.ensemble.made import table, vote
from tests.mining.test_mine import curve_in
from tests.services.chat_server import Answer, Bucket, Request, answer_digit, chat_server, completion


def rated(folder: Path, name: str, numbers: list[float]) -> str:
    """A file of numbers for p0, p1, ..., as an annotator that costs nothing."""
    path = folder / f"{name}.csv"
    path.write_text("pair_id,score\n" + "".join(f"p{at},{number}\n" for at, number in enumerate(numbers)))
    return f"file:{path}#0-1"


AGREED = [at / 10 for at in range(10)]
TORN = [0.0, 0.1, 0.9, 0.3, 0.4, 0.2, 0.6, 0.7, 0.1, 0.9]  # by .7 on p2 and p8, by .3 on p5


def asked_about(requests: list[Request]) -> set[int]:
    """The numbers of the pairs, which stand in brackets behind their first texts."""
    return {int(request["messages"][-1]["content"].split("(")[1].split(")")[0]) for request in requests}


def test_the_dear_are_asked_about_the_most_doubtful_pairs_alone(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    cheap = [rated(tmp_path, "one", AGREED), rated(tmp_path, "two", TORN)]
    with chat_server() as server, Run.open(tmp_path / "run", replace=True) as run:
        specs = [cheap[0], f"judge={server.url}#m", cheap[1]]
        entry = annotate(run, specs, cascade=0.3)
        assert asked_about(server.requests) == {2, 5, 8}
        assert annotate(run, specs, cascade=0.3).fresh is False
        votes = {(row["pair_id"], row["annotator"]) for row in votes_of(tmp_path / "run")}
        assert {pair for pair, name in votes if name == "judge"} == {"p2", "p5", "p8"}
        assert len(votes) == 23
        assert entry.key["settings"]["cascade"] == {"share": 0.3, "dear": ["judge"]}
        assert entry.tally.counts["pairs_asked_about"] == {"judge": 3, "one.csv": 10, "two.csv": 10}
        assert "not_asked" not in entry.tally.counts
        # a larger share asks for the rest alone, none asks nobody
        larger = annotate(run, specs, cascade=0.5)
        assert (len(server.requests), asked_about(server.requests) >= {2, 5, 8}) == (5, True)
        assert larger.tally.counts["pairs_asked_about"]["judge"] == 5
        none = annotate(run, specs, cascade=0.0)
        assert (len(server.requests), none.rows) == (5, 20)
        every = annotate(run, specs, cascade=1.0)
        assert (len(server.requests), every.rows) == (10, 30)


def test_what_a_curve_leaves_open_is_worth_a_dear_ask(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one cheap annotator tells no probabilities: the curve alone chooses, and the pairs nearest to even odds."""
    make_pairs(tmp_path / "run", 30)
    encoder = Encoder(str(tiny_model))
    pairs = Run(tmp_path / "run").table("pairs").to_pylist()
    left, right = (encoder.encode([row[side] for row in pairs]) for side in ("text1", "text2"))
    cosine = np.einsum("ij,ij->i", left.astype(np.float64), right)
    level = float(np.quantile(cosine, 0.7))
    curve = Relevance.load(curve_in(tmp_path / "curve", tiny_model, (-30 * level, 30.0, 0.0, 0.0)))
    expected = set(np.argsort(np.abs(cosine - level))[:6].tolist())
    cheap = rated(tmp_path, "one", [at / 30 for at in range(30)])
    with chat_server() as server, Run.open(tmp_path / "run") as run:
        specs = [cheap, f"judge={server.url}#m"]
        with pytest.raises(InputError, match=r"--relevance says which pairs --cascade asks about: give --cascade"):
            annotate(run, specs, relevance=curve)
        with pytest.raises(
            InputError, match=r"is of tiny-encoder, which isn't found here: name it as an annotator too"
        ):
            annotate(run, specs, cascade=0.2, relevance=curve)
        assert not server.requests
        monkeypatch.chdir(tiny_model.parent)  # where the curve's name means the model
        entry = annotate(run, specs, cascade=0.2, relevance=curve)
        assert asked_about(server.requests) == expected
    settings = entry.key["settings"]["cascade"]
    assert settings["relevance"] == {"model": tiny_model.name, "calibration": None, "reranker": None}
    assert entry.key["inputs"]["relevance"] == curve.fingerprint


def test_a_dry_run_refuses_a_curve_of_another_corpus_as_the_run_would(
    tmp_path: Path, tiny_model: Path, command: Command
) -> None:
    make_pairs(tmp_path / "run", 10)
    folder = curve_in(tmp_path / "curve", tiny_model, (0.0, 1.0, 0.0, 0.0))
    told = json.loads((folder / "relevance.json").read_text())
    told["similarity_of"]["calibration"] = "length-centering"
    (folder / "relevance.json").write_text(json.dumps(told))
    encoder, texts = Encoder(str(tiny_model)), [f"other {at}" for at in range(8)]
    method = METHODS["length-centering"].fit(encoder.encode(texts), encoder.token_counts(texts))
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads, "other.txt")
    (folder / "calibration").mkdir()
    Calibration(method, *about, np.sort(digests_of(texts))).save(folder / "calibration")
    cheap = rated(tmp_path, "one", [at / 10 for at in range(10)])
    with chat_server() as server:
        specs = [cheap, f"judge={server.url}#m", f"embedding:{tiny_model}"]
        call = ["annotate", tmp_path / "run", *(word for spec in specs for word in ("--llm", spec))]
        call += ["--cascade", 0.2, "--relevance", folder, "--yes"]
        dry, done = command(*call, "--dry-run"), command(*call)
        assert (dry.exit_code, dry.stderr) == (2, done.stderr)
        assert "was fitted to other.txt, which holds 0% of these texts" in dry.stderr
        assert command(*call, "--dry-run", "--accept", "corpus").exit_code == 0
        assert not server.requests
        assert command(*call, "--accept", "corpus").exit_code == 0
        assert len(server.requests) == 2


def test_named_endpoints_are_dear_and_the_others_cheap(tmp_path: Path) -> None:
    """The cheap one wavers on two pairs; the dear one is asked about these."""

    def waver(request: Request, count: int) -> Answer:
        sure = asked_about([request]) & {1, 6} == set()
        return Answer(completion("3", top={"3": 0.97, "4": 0.03} if sure else {"3": 0.5, "0": 0.3}))

    make_pairs(tmp_path / "run", 10)
    with chat_server(waver) as mini, chat_server() as large, Run.open(tmp_path / "run") as run:
        specs = [f"large={large.url}#m", f"mini={mini.url}#m"]
        entry = annotate(run, specs, cascade=0.2, dear=["large"])
    assert (len(mini.requests), asked_about(large.requests)) == (10, {1, 6})
    assert entry.tally.counts["votes"] == {"large": 2, "mini": 10}


def test_the_dear_begin_with_what_the_cheap_learned_of_their_endpoint(tmp_path: Path) -> None:
    """The cheap ones leave a bucket of 12 nearly empty, which gets 20 more a second."""
    bucket = Bucket(12, 20, latency=0.0)
    make_pairs(tmp_path / "run", 20)
    with chat_server(bucket) as server, Run.open(tmp_path / "run") as run:
        specs = [f"mini={server.url}#mini", f"large={server.url}#large"]
        entry = annotate(run, specs, cascade=1.0, dear=["large"], concurrency=8)
    assert bucket.refused <= 1  # 5 where the dear begin anew
    assert entry.tally.counts["votes"] == {"large": 20, "mini": 20}


def test_doubt_adds_up_what_the_cheap_tell() -> None:
    rows = [vote("p", "a", 5.0), vote("p", "b", 0.5, "0..1"), vote("q", "a", 2.5, entropy=math.log(6) / 2)]
    rows += [vote("q", "b", 0.5, "0..1", missing_mass=0.25), vote("r", "a", 1.0), vote("s", "a", None)]
    rows += [vote("t", "a", 2.0), vote("t", "a", 4.0, order="ba"), vote("t", "b", 0.6, "0..1")]
    found = doubts(table(rows), ["s", "p", "q", "r", "t"])
    # p: 1 and .5; q: half of half the most entropy, and the missing mass; r, alone: the mean spread of p, q and t
    assert found == pytest.approx([math.inf, 0.25, 0.25 + 0.25, 0.25 / 3, 0.4])


def test_equal_doubt_is_chosen_by_the_seed_and_smaller_shares_lie_in_larger() -> None:
    specs = parse_specs(["embedding:x", "http://h:1/v1#m"])
    flat = np.zeros(1000)
    small, large = (cascade_of(specs, share, []) for share in (0.1, 0.4))
    assert small is not None
    assert large is not None
    chosen = small.chosen(flat, seed=1)
    assert chosen.sum() == 100
    assert large.chosen(flat, seed=1)[chosen].all()
    assert 20 < chosen[:500].sum() < 80
    assert (chosen == small.chosen(flat, seed=1)).all()
    assert not (chosen == small.chosen(flat, seed=2)).all()


def test_a_dry_run_counts_only_what_the_dear_would_be_asked(command: Command, tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    cheap = [rated(tmp_path, "one", AGREED), rated(tmp_path, "two", TORN)]
    with chat_server() as server:
        specs = [*cheap, f"judge={server.url}#m"]
        call = ["annotate", tmp_path / "run", *(word for spec in specs for word in ("--llm", spec))]
        first = json.loads(command(*call, "--cascade", 0.3, "--dry-run", "--json").stdout)
        assert ([row["due"] for row in first["asks"]], first["total"]["requests"]) == ([0, 0, 3], 3)
        assert server.requests == []
        assert command(*call, "--cascade", 0.3).exit_code == 0
        with Run.open(tmp_path / "run") as run:
            later = plan(run, specs, cascade=0.5)[2]
            every = plan(run, specs)[2]
        assert (later.due, later.known, every.due) == (2, 3, 7)
        assert every.tokens is not None
        assert later.tokens == pytest.approx(every.tokens * 2 / 7, abs=1)
        done = command(*call, "--cascade", 0.5, "--dear", "judge", "--yes")
        assert "pairs asked about: one.csv 10, two.csv 10, judge 5" in done.stdout
        assert len(server.requests) == 5


def test_pairs_that_stand_twice_are_planned_for_at_the_most_they_can_cost(tmp_path: Path) -> None:
    """Ten pairs twice: half of the twenty may be ten that are asked in different words, and never more."""
    rows = [f"{at},text {at % 10},other {at % 10}\n" for at in range(20)]
    (tmp_path / "pairs.csv").write_text("id,text1,text2\n" + "".join(rows))
    (tmp_path / "cheap.csv").write_text("id,score\n" + "".join(f"{at},{at / 20}\n" for at in range(20)))
    with Run.open(tmp_path / "run") as run:
        import_pairs(run, pairs_source(tmp_path / "pairs.csv"))
        specs = [f"file:{tmp_path / 'cheap.csv'}", "judge=http://127.0.0.1:9/v1#m"]
        due = {share: plan(run, specs, cascade=share)[1].due for share in (0.0, 0.2, 0.5, 1.0)}
    assert due == {0.0: 0, 0.2: 4, 0.5: 10, 1.0: 10}


def test_while_cheap_votes_are_left_out_the_dear_wait(tmp_path: Path) -> None:
    from stscurate.annotators import Purse

    make_pairs(tmp_path / "run", 10)
    with chat_server() as mini, chat_server() as large, Run.open(tmp_path / "run") as run:
        specs = [f"mini={mini.url}#m", f"large={large.url}#m"]
        part = annotate(run, specs, cascade=0.4, dear=["large"], purse=Purse(requests=7))
        assert (len(mini.requests), len(large.requests), part.rows) == (7, 0, 7)
        assert part.tally.counts["not_asked"] == {"mini": 3, "large": 4}
        whole = annotate(run, specs, cascade=0.4, dear=["large"])
        assert (len(mini.requests), len(large.requests), whole.rows) == (10, 4, 14)
        assert "not_asked" not in whole.tally.counts


def test_an_endpoint_that_ends_the_work_leaves_the_votes_of_the_others(tmp_path: Path) -> None:
    make_pairs(tmp_path / "run", 10)
    with chat_server() as mini, chat_server(lambda *_: Answer({}, 402)) as large, Run.open(tmp_path / "run") as run:
        with pytest.raises(ServiceError, match="credit is used up"):
            annotate(run, [f"mini={mini.url}#m", f"large={large.url}#m"], cascade=0.4, dear=["large"])
        counts = run.entries["votes"].tally.counts
        assert (counts["votes"], counts["not_asked"]) == ({"mini": 10}, {"large": 4})


_CASCADE = """
import sys; from pathlib import Path
from stscurate.annotators import annotate; from stscurate.store import Run
with Run.open(Path(sys.argv[1])) as run: annotate(run, sys.argv[2:], cascade=0.5, concurrency=2)
"""


def test_a_killed_cascade_goes_on_and_ends_at_the_same_bytes(tmp_path: Path) -> None:
    def slow(request: Request, count: int) -> Answer:
        time.sleep(0.02)
        return answer_digit(request, count)

    numbers = [[((at * step) % 40) / 40 for at in range(40)] for step in (1, 7)]
    cheap = [rated(tmp_path, name, found) for name, found in zip(("one", "two"), numbers, strict=True)]
    for name in ("killed", "whole"):
        make_pairs(tmp_path / name, 40)
    with chat_server(slow) as server:
        specs = [*cheap, f"judge={server.url}#m"]
        process = subprocess.Popen([sys.executable, "-c", _CASCADE, str(tmp_path / "killed"), *specs])
        while len(server.requests) < 8:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
        with Run.open(tmp_path / "killed") as run:
            annotate(run, specs, cascade=0.5)
        assert 20 <= len(server.requests) <= 22
    with chat_server() as server, Run.open(tmp_path / "whole") as run:
        annotate(run, [*cheap, f"judge={server.url}#m"], cascade=0.5)
    assert fingerprint(tmp_path / "killed" / "votes") == fingerprint(tmp_path / "whole" / "votes")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cascade": 1.5}, "--cascade 1.5: give the share"),
        ({"dear": ["judge"]}, "--dear names the annotators that --cascade asks less: give --cascade SHARE too"),
        ({"cascade": 0.5, "dear": ["jury"]}, "--dear jury: no --llm has that name; there are x, judge, v.csv"),
        ({"cascade": 0.5, "dear": ["v.csv"]}, "what stands in a file costs nothing more"),
        ({"cascade": 0.5, "dear": ["x", "judge", "v.csv"]}, "costs nothing more"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], says: str) -> None:
    specs = parse_specs(["embedding:x", "judge=http://h:1/v1#m", "file:v.csv"])
    with pytest.raises(InputError, match=says):
        cascade_of(specs, given.get("cascade"), given.get("dear", []))


def test_all_cheap_or_all_dear_is_no_cascade() -> None:
    with pytest.raises(InputError, match="all of x are cheap"):
        cascade_of(parse_specs(["embedding:x"]), 0.5, [])
    with pytest.raises(InputError, match="all of m, n are dear"):
        cascade_of(parse_specs(["http://h:1/v1#m", "http://h:1/v1#n"]), 0.5, [])
