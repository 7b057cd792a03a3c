"""A run as one HTML page: what it counts, and that hostile texts stay text."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stscurate.cli import app
from stscurate.errors import InputError
from stscurate.records import Tally, from_rows
from stscurate.reporting import gather, seen, write_report
from stscurate.store import Run
from tests.publishing.samples import pair, write_pairs, write_run

HOSTILE = "<script>alert('x')</script> \" onload=x \x00 \u202egnp.exe </bdi><img src=http://a.example/x> 🙂"


class Page(HTMLParser):
    """The tags of a page, its attributes' names and values, and its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "demo") as opened:
        write_run(opened)
        yield opened


def test_the_page_counts_what_the_run_holds(run: Run) -> None:
    facts = gather(run, models=[], results=[], examples=2)
    pairing = next(stage for stage in facts["stages"] if stage["name"] == "pairing")
    assert pairing["rows_in"] == 11
    assert pairing["outputs"] == [("pairs", 9, 9 / 11)]
    assert pairing["dropped"] == [("bot_author", 2, 2 / 11)]
    groups = {group["by"]: [row[:2] for row in group["rows"]] for group in facts["groups"]}
    assert groups["split"] == [("train", 4), ("test", 2), ("validation", 2), ("none", 1)]
    assert groups["label"] == [("none", 4), ("1", 3), ("0", 2)]
    scores = {found["name"]: (found["rows"], [rows for _, _, rows, _ in found["bins"]]) for found in facts["scores"]}
    # annotators' scores .9, .2, .6 (which lies below the edge .6000000000000001); a bin is .05 wide
    assert scores["train"] == (3, [int(place in (4, 11, 18)) for place in range(20)])
    assert scores["not split"] == (1, [int(place == 19) for place in range(20)])
    small = next(found for found in facts["annotators"] if found["name"] == "small")
    assert (small["votes"], small["failed"], small["low"], small["high"]) == (12, 2, 1.0, 4.5)
    assert facts["agreement"]["rows"] == [("large", [1.0, 1.0]), ("small", [1.0, 1.0])]
    examples = {group["name"]: [row["id"] for row in group["pairs"]] for group in facts["examples"]}
    assert examples == {"Widest spread": ["p0", "p1"], "Highest score": ["p3", "p0"], "Lowest score": ["p7", "p1"]}


def test_one_annotator_has_no_spread_to_show(run: Run) -> None:
    alone = run.table("scores").to_pylist()
    for row in alone:
        row |= {"spread": None, "agreement": None, "annotators": 1}
    assert gather(run, models=[], results=[], examples=2)["doubt"]["rows"] == 6
    with Run.open(run.folder.with_name("alone")) as other:
        write_run(other)
        other.replace = True
        stage = other.stage("scores", tables=["scores"], inputs={}, settings={"one": True})
        stage.write(0, {"scores": from_rows(alone, "scores")}, Tally())
        stage.commit()
        facts = gather(other, models=[], results=[], examples=2)
        write_report(other, other.folder / "report.html")
        page = (other.folder / "report.html").read_text("utf-8")
    assert facts["doubt"] is None
    assert "Widest spread" not in [group["name"] for group in facts["examples"]]
    assert "Spread between annotators" not in page


def test_hostile_texts_stay_text_and_the_page_asks_for_nothing(tmp_path: Path) -> None:
    rows = [
        pair("<b>id", HOSTILE, "كيف أعيد", score=0.5, split="train", repository="</title><script>", origin="<i>"),
        pair("p", "x" * 5000, "{{ 7 * 7 }}", score=1.0),
    ]
    with Run.open(tmp_path / "<run>") as run:
        write_pairs(run, rows)
        write_report(run, tmp_path / "report.html")
        before = (tmp_path / "report.html").read_bytes()
        write_report(run, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == before
    page = Page(before.decode())
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form", "b id"}
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "srcset", "action")]
    assert {value[0] for name, value in page.attributes if name == "href"} == {"#"}
    assert b"url(" not in before
    assert b"@import" not in before
    assert b"\x00" not in before
    assert "\u202e" not in before.decode()
    assert seen(HOSTILE) in page.words
    assert "{{ 7 * 7 }}" in page.words
    assert "x" * 600 + " […]" in page.words
    assert "كيف أعيد" in page.words


def test_curves_and_results_are_drawn_from_their_folders(run: Run, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    points = [
        {"step": 10, "loss": 4.0},
        {"step": 20, "loss": 2.0, "spearman": 0.5},
        {"step": 30, "loss": 1.0, "spearman": 0.7},
    ]
    (model / "training_curve.json").write_text(json.dumps({"points": points}))
    result = {"model": "m", "set": "dev", "rows": 12, "spearman": 0.71234, "low": 0.6, "high": 0.8, "rows_clean": None,
              "spearman_clean": None}  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps({"results": [result]}))
    facts = write_report(run, tmp_path / "report.html", models=[model], results=[tmp_path])
    lines = {line["name"]: line["points"] for line in facts["curves"][0]["lines"]}
    assert lines == {"loss": "0.00,0.00 50.00,26.67 100.00,40.00", "spearman": "0.00,40.00 100.00,0.00"}
    page = Page((tmp_path / "report.html").read_text()).words
    assert "0.712" in page
    assert "0.600 to 0.800" in page
    with pytest.raises(
        InputError, match=r"has no readable training_curve\.json: give a folder that `stscurate train` made"
    ):
        write_report(run, tmp_path / "other.html", models=[tmp_path])
    assert not (tmp_path / "other.html").exists()


def test_report_command_names_the_page_and_refuses_what_is_no_run(run: Run, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(run.folder), "--json"])
    assert json.loads(done.stdout)["report"] == str(run.folder / "report.html")
    refused = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert refused.exit_code == 2
    assert "isn't a run" in refused.stderr
    with Run.open(tmp_path / "empty") as empty, pytest.raises(InputError, match="no finished stage"):
        write_report(empty, tmp_path / "x.html")


def test_a_file_that_is_no_page_is_not_written_over(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "pairs.csv"
    data.write_text("text1,text2\n")
    with pytest.raises(InputError, match="is there already and isn't a page: name another --out, or remove it"):
        write_report(run, data)
    assert data.read_text() == "text1,text2\n"
    write_report(run, tmp_path / "page.html")
    write_report(run, tmp_path / "page.html")
