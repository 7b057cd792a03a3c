"""Defined benchmarks: their definitions, and their rows from the Hub and from files as first published."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stscurate.errors import InputError
from stscurate.evaluation import gold_set, gold_sets
from stscurate.evaluation.sets.definitions import Benchmark, Collection, Packaged, Source, definitions
from stscurate.roles import parse_scale
from tests.conftest import ROOT
from tests.local_hub import LocalHub
from tests.shared_data import DATA

shared = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} isn't here: the public sets are no part of this")
BENCHMARKS = {name: found for name, found in definitions().items() if isinstance(found, Benchmark)}
NAMES = ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr", "sts17", "mrpc", "qqp", "qnli", "gis"]
NAMES += ["stsb-zh", "atec", "bq", "lcqmc"]


def test_all_benchmarks_are_defined() -> None:
    assert {*NAMES, "sickr-mteb"} == BENCHMARKS.keys()
    assert isinstance(definitions()["lee-news"], Packaged)
    papers = definitions()["papers"]
    assert isinstance(papers, Collection)
    assert papers.sets == tuple(NAMES[:7])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_definition_says_where_it_comes_from_and_how_it_is_read(name: str) -> None:
    found = BENCHMARKS[name]
    assert found.licence
    assert found.description.strip()
    assert found.split in found.splits
    assert found.rows.get(found.split, 0) > 0
    assert parse_scale(found.scale)
    assert set(found.rows) <= set(found.splits)
    assert found.hub
    assert found.hub.repository.count("/") == 1
    assert found.hub.checked, "say what of it was checked, or unchecked"
    assert found.split in found.hub.files
    for source in (found.hub, *found.originals):
        roles = set(source.columns) | set(source.order)
        assert {"text1", "text2"} <= roles
        assert len({"score", "label"} & roles) == 1
        assert source.separator in ("tab", "comma")
        assert set(source.labels.values()) == {0.0, 1.0}
        for pattern in source.files.values():
            assert ("{subset}" in pattern) <= bool(found.subsets)
    assert (found.scale == "0-1") == all("label" in {*one.columns, *one.order} for one in _sources(found))


def _sources(found: Benchmark) -> list[Source]:
    return [*([found.hub] if found.hub else []), *found.originals]


@pytest.fixture
def sts16(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "STS2016"
    folder.mkdir(parents=True)
    for number, subset in enumerate(BENCHMARKS["sts16"].subsets):
        lines = [f'{number}\tA "stray quote.\tA cat {number}.', "\tno\tgold", "5\t \tempty text"]
        (folder / f"{subset}.test.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_subsets_are_one_set_and_rows_without_gold_are_counted(sts16: Path) -> None:
    found = gold_set(f"sts16={sts16}")
    assert found.name == "sts16"
    assert found.gold.tolist() == [0, 0.2, 0.4, 0.6, 0.8]
    assert found.pairs[2] == ('A "stray quote.', "A cat 2.")
    assert found.subsets == BENCHMARKS["sts16"].subsets
    assert found.dropped == {"empty_text": 5, "no_gold": 5}
    assert "84 % of STS-B train pairs" in " ".join(found.notes)
    assert "5 pairs with gold were read where 1,186 were expected" in found.notes[-1]


def test_a_subset_is_never_the_whole_under_its_name(sts16: Path, tmp_path: Path) -> None:
    copy = hub_files(tmp_path / "copy")
    assert len(gold_set(f"sts16={copy}").pairs) == 6
    with pytest.raises(InputError, match=r"sts16 on the Hub doesn't tell its subsets apart.*sts16/headlines=FOLDER"):
        gold_set("sts16/headlines")
    with pytest.raises(InputError, match=r"doesn't hold sts16/headlines .* nor does a copy of it") as refused:
        gold_set(f"sts16/headlines={copy}")
    assert "a copy of mteb" not in str(refused.value)
    assert gold_set(f"sts17/en-de={copy}").subsets == ("en-de",) * 6  # a file each: the Hub's copy tells
    rows = [f"{score}\tleft {score}\tright {score}" for score in range(4)]
    (copy / "headlines.test.tsv").write_text("\n".join(rows) + "\n")  # as first published, beside the Hub's
    assert gold_set(f"sts16/headlines={copy}").gold.tolist() == [0, 0.2, 0.4, 0.6]


def test_texts_and_gold_in_two_files_go_line_by_line(tmp_path: Path) -> None:
    for subset in BENCHMARKS["sts12"].subsets:
        (tmp_path / f"STS.input.{subset}.txt").write_text("a b\tc d\ne\tf\ng\th\n")
        (tmp_path / f"STS.gs.{subset}.txt").write_text("4.5\n\n0.5\n")
    found = gold_set(f"sts12={tmp_path}")
    assert (len(found.pairs), found.dropped) == (10, {"no_gold": 5})
    assert found.gold[:2].tolist() == [0.9, 0.1]
    (tmp_path / "STS.gs.MSRvid.txt").write_text("1\n2\n")
    with pytest.raises(InputError, match=r"STS\.input\.MSRvid\.txt has 3 lines and STS\.gs\.MSRvid\.txt 2"):
        gold_set(f"sts12={tmp_path}")
    one = tmp_path / "STS.input.MSRpar.txt"
    with pytest.raises(InputError, match="sts12 has 2 pairs with gold"):
        gold_set(f"sts12={one}")
    one.write_text("a b c d\n")
    (tmp_path / "STS.gs.MSRpar.txt").write_text("1\n")
    with pytest.raises(InputError, match=r"line 1 has 2 fields where 3 are due, with tabs"):
        gold_set(f"sts12={one}")


def test_sick_mrpc_and_glue_are_read_by_their_header_lines(tmp_path: Path) -> None:
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    rows = [f"{n}\tleft {n}\tright {n}\t{n}\tNEUTRAL" for n in range(1, 6)]
    (tmp_path / "SICK_test_annotated.txt").write_text("\r\n".join([head, *rows]) + "\r\n")
    assert gold_set(f"sickr={tmp_path}").gold.tolist() == [0, 0.25, 0.5, 0.75, 1]
    rows = ['1\t1\t2\tHe said "no.\tHe said no.', "0\t3\t4\tA cat.\tA dog.", "1\t5\t6\tA cow.\tCows."]
    (tmp_path / "msr-para-test.tsv").write_text(
        "\n".join(["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows]) + "\n", encoding="utf-8"
    )
    found = gold_set(f"mrpc={tmp_path / 'msr-para-test.tsv'}")
    assert (found.binary, found.gold.tolist(), found.pairs[0][0]) == (True, [1, 0, 1], 'He said "no.')
    rows = [
        "0\tWho?\tMe.\tentailment",
        "1\tWhy?\tHere.\tnot_entailment",
        "2\tHow?\tSo.\tentailment",
        "3\tIs it?\tYes.\t",
    ]
    (tmp_path / "dev.tsv").write_text("\n".join(["index\tquestion\tsentence\tlabel", *rows]) + "\n")
    found = gold_set(f"qnli={tmp_path}")  # that the sentence answers the question is the 1
    assert (found.gold.tolist(), found.dropped) == ([1, 0, 1], {"no_gold": 1})


def test_sts_b_is_read_in_both_of_its_layouts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "stsb-en-dev.csv").write_text('"A man, here.",A man.,5.0\nB,C,2.5\nD,E,0\n')
    lines = [
        "main-news\tMSRpar\t2012\t1\t5.00\tA man, here.\tA man.",
        "x\ty\tz\t2\t2.5\tB\tC\tsource",
        "x\ty\tz\t3\t0\tD\tE",
    ]
    (tmp_path / "b" / "sts-dev.csv").write_text("\n".join(lines) + "\n")
    one, two = (gold_set(f"stsb:validation={tmp_path / name}") for name in "ab")
    assert one.pairs == two.pairs == [("A man, here.", "A man."), ("B", "C"), ("D", "E")]
    assert one.gold.tolist() == two.gold.tolist() == [1, 0.5, 0]
    assert one.name == "stsb:validation"
    for path in (tmp_path / "a", tmp_path / "a" / "stsb-en-dev.csv", tmp_path / "b"):
        with pytest.raises(InputError, match=f"holds the split validation: name it stsb:validation={path}") as refused:
            gold_set(f"stsb={path}")
        assert "the split test" not in str(refused.value)


def test_a_folder_of_a_benchmarks_name_doesnt_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("stsb", "papers", "lee-news", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "readme.txt.bak").write_text("x")
    (tmp_path / "stsb" / "stsb-en-test.csv").write_text("A,B,5.0\nB,C,2.5\nD,E,0\n")
    assert len(gold_set("stsb=stsb").pairs) == 3
    for name, told in [
        ("stsb", "The benchmark stsb is stsb=stsb where that holds it, and stsb:test from the Hub"),
        ("papers", "The benchmark papers is papers=papers .* papers:test from"),
        ("lee-news", "The benchmark lee-news is found where no lee-news lies"),
    ]:
        with pytest.raises(InputError, match=told):
            gold_sets([name])
    with pytest.raises(InputError, match="other") as refused:
        gold_sets(["other"])
    assert "benchmark" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sts12={}", r"doesn't hold sts12 \(test\) in a layout that is known: STS\.input\.MSRpar\.txt with STS\.gs\."),
        ("sts12={}/none", "doesn't exist: check the path"),
        ("sts12:dev", "sts12 has no split dev; it has test"),
        ("sts12/mrpc", "sts12 has no subset mrpc; it has MSRpar, "),
        ("papers/sts12", "papers stands for sts12, sts13"),
        ("lee-news:dev", "lee-news comes whole"),
        ("sts99={}", "no benchmark of that name .*stsb-zh"),
        ("atec={}", r"a copy of C-MTEB/ATEC with data/test-\*\.parquet"),
    ],
)
def test_what_is_no_set_says_what_would_be_one(tmp_path: Path, given: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        gold_sets([given.format(tmp_path)])


def test_a_benchmark_in_two_folders_is_not_guessed(sts16: Path) -> None:
    (sts16 / "again").mkdir()
    for path in sorted(sts16.glob("deep/STS2016/*.tsv")):
        (sts16 / "again" / path.name).write_text(path.read_text())
    with pytest.raises(InputError, match="sts16 stands in several folders"):
        gold_set(f"sts16={sts16}")
    assert len(gold_set(f"sts16={sts16 / 'again'}").pairs) == 5


def test_texts_that_stand_again_with_other_gold_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2,score\nA cat,a dog,1\nA  DOG,a cat,0.5\nb,c,0\nb,c,0\nd,e,0.2\n")
    assert gold_set(str(path)).conflicting == 2


def hub_files(folder: Path) -> Path:
    """Files of three repositories, beside each other, as the Hub has them."""
    rows = [{"sentence1": f"left {n}", "sentence2": f"right {n}", "score": n} for n in range(6)]
    for name in ("test.jsonl.gz", "test/en-de.jsonl.gz"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / name, "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    (folder / "qnli").mkdir()
    table = pa.table(
        {
            "question": ["a?", "b?", "c?", "d?"],
            "sentence": ["A.", "B.", "C.", "D."],
            "label": [0, 1, 0, -1],
            "idx": range(4),
        }
    )
    pq.write_table(table, folder / "qnli" / "validation-00000-of-00001.parquet")
    return folder


def revision(name: str) -> str:
    hub = BENCHMARKS[name].hub
    assert hub
    return hub.revision


ASK = """
import json, sys
from stscurate.errors import StscurateError
from stscurate.evaluation import gold_set
try:
    found = gold_set(sys.argv[1])
    print(json.dumps([found.name, found.pairs[0], found.gold.tolist(), found.dropped]))
except StscurateError as error:
    print(json.dumps(str(error)))
"""


def test_benchmarks_come_from_the_hub(tmp_path: Path) -> None:
    def asked_for(name: str, repository: str, revision: str = "") -> object:
        """In a process of its own: the client reads HF_ENDPOINT when it is imported."""
        with LocalHub.serve(tmp_path / "storage") as hub:
            made = hub.create("dataset", repository, folder=folder)
            if revision:
                made.commits[revision] = replace(made.head, oid=revision)
            call = [sys.executable, "-c", ASK, name]
            environment = hub.environment(tmp_path / name.replace("/", "-"), token=None)
            done = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
            lines = [asked.path for asked in hub.log if "/resolve/" in asked.path]
            fetched.append([line.partition("/resolve/")[2].partition("/")[2] for line in lines])
        return json.loads(done.stdout)

    folder, fetched = hub_files(tmp_path / "hub"), list[list[str]]()
    stsb = asked_for("stsb", "mteb/stsbenchmark-sts", revision("stsb"))
    assert stsb == ["stsb", ["left 0", "right 0"], [0, 0.2, 0.4, 0.6, 0.8, 1], {}]
    assert set(fetched[-1]) == {"test.jsonl.gz"}  # nothing but what the split needs
    track = asked_for("sts17/en-de", "mteb/sts17-crosslingual-sts", revision("sts17"))
    assert isinstance(track, list)
    assert track[:2] == ["sts17/en-de", ["left 0", "right 0"]]
    qnli = asked_for("qnli", "nyu-mll/glue")
    assert qnli == ["qnli", ["a?", "A."], [1, 0, 1], {"no_gold": 1}]
    assert "nyu-mll/glue on the Hub has no file mrpc/test-*.parquet" in str(asked_for("mrpc", "nyu-mll/glue"))
    copied = gold_set(f"qnli={folder}")  # a copy of the repository on this disk is read as well
    assert copied.gold.tolist() == [1, 0, 1]


@shared
def test_the_seven_sets_as_published_have_the_numbers_of_pairs_that_the_papers_tell() -> None:
    found = {gold.name: gold for gold in gold_sets([f"papers={DATA}"])}
    assert {name: len(gold.pairs) for name, gold in found.items()} == {
        "sts12": 3108,
        "sts13": 1500,
        "sts14": 3750,
        "sts15": 3000,
        "sts16": 1186,
        "stsb": 1379,
        "sickr": 4927,
    }
    assert (found["sts15"].dropped, found["sts16"].dropped) == ({"no_gold": 5500}, {"no_gold": 7997})
    assert {gold.collection for gold in found.values()} == {"papers"}
    assert not any("were expected" in note for gold in found.values() for note in gold.notes)


@shared
def test_mrpc_and_chinese_sts_b_as_published() -> None:
    mrpc = gold_set(f"mrpc={DATA}")
    assert (len(mrpc.pairs), mrpc.gold.mean().round(4)) == (
        1725,
        0.6649,
    )  # always yes: .6655 of accuracy, as told there
    assert len(gold_set(f"stsb-zh={DATA}").pairs) == 1379
