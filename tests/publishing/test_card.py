from pathlib import Path
from typing import Any

import pytest
import yaml

from stscurate.errors import InputError
from stscurate.pairing import make_pairs
from stscurate.publishing import publish_folder
from stscurate.publishing.card import check_card, read_front_matter, size_category
from stscurate.records import Tally
from stscurate.sources import collect_issues
from stscurate.store import Run
from tests.publishing.samples import pair, write_pairs


def test_front_matter_names_configs_features_and_rows(card: str) -> None:
    matter = read_front_matter(card)
    configs = matter.pop("configs")
    infos = matter.pop("dataset_info")
    assert matter == {
        "license": "cc-by-4.0",
        "language": ["en", "no"],  # not False, which is what YAML makes of a bare no
        "pretty_name": "demo",
        "size_categories": ["n<1K"],
        "task_categories": ["sentence-similarity", "text-classification"],
        "task_ids": ["semantic-similarity-scoring"],
        "annotations_creators": ["machine-generated", "found"],
        "tags": ["semantic-textual-similarity", "sentence-transformers", "stscurate"],
    }
    assert [config["config_name"] for config in configs] == ["pairs", "pair-class", "gis", "triplets", "provenance"]
    assert [config.get("default") for config in configs] == [True, None, None, None, None]
    for split in infos[0]["splits"]:
        assert split.pop("num_bytes") > 0
    assert configs[3]["data_files"] == [{"split": "train", "path": "data/triplets/train-*"}]
    assert infos[0] == {
        "config_name": "pairs",
        "features": [
            {"name": "sentence1", "dtype": "string"},
            {"name": "sentence2", "dtype": "string"},
            {"name": "score", "dtype": "float64"},
        ],
        "splits": [
            {"name": "train", "num_examples": 4},
            {"name": "validation", "num_examples": 2},
            {"name": "test", "num_examples": 2},
        ],
    }


def test_features_are_spelt_as_datasets_spells_them(card: str) -> None:
    from datasets import ClassLabel, Features, List, Value

    infos = {info["config_name"]: info["features"] for info in read_front_matter(card)["dataset_info"]}
    expected = Features(
        {
            **{name: Value("string") for name in ("pair_id", "id1", "origin")},
            "tier": Value("int8"),
            "flags": List(Value("string")),
            **{name: Value("string") for name in ("component", "repository", "licence", "score_from")},
            "annotators": List(Value("string")),
            "raw": List(Value("float64")),
            **{name: List(Value("string")) for name in ("scales", "orders", "prompts")},
        }
    )
    assert infos["provenance"] == expected._to_yaml_list()
    labels = Features({"labels": ClassLabel(names=["different", "same"])})
    assert infos["pair-class"][2:] == labels._to_yaml_list()


def test_datasets_reads_the_rows_of_each_split_from_the_card(card: str, tmp_path: Path) -> None:
    import datasets

    for config in ("pairs", "pair-class", "gis", "triplets", "provenance"):
        info = datasets.load_dataset_builder(str(tmp_path / "set"), config, cache_dir=str(tmp_path / "cache")).info
        data = datasets.load_dataset(str(tmp_path / "set"), config, cache_dir=str(tmp_path / "cache"))
        # None where `datasets` finds the card's dataset_info malformed: it passes over it, with a mere log line
        assert {name: split.num_examples for name, split in info.splits.items()} == data.num_rows
        for name, split in info.splits.items():
            assert split.num_bytes == pytest.approx(data[name].data.nbytes, abs=64)  # but for bitmaps of nulls


def test_body_tells_what_was_collected_dropped_and_labelled(card: str) -> None:
    for line in (
        "| pairs | train | 4 |",
        "| pairing | evidence | comment | 5 |",
        "| made up | 3 | 1 |",
        "| small | digit | 0..5 | 5eed | 12 | 2 |",
        "| mean | 6 | 6 | 0.800 |",
        "| train | annotators | 3 |",
        "| validation | label | 1 |",
        "| pairing | bot_author | 2 |",
        "Left out when this was published, for want of any score or label: 1 of the pairs.",
        "| validation | tokens | 8 | 8 | 9 | 9 |",
        "No text and no component",
        "The set as a whole is published under: cc-by-4.0.",
        "Repositories that the pairs come from: 2.",
        "| a/c | MIT OR Apache-2.0 | 1 |",
        "- issues.jsonl: `" + "ab" * 32 + "`",
        ' "negatives": 1.0',
        "## Asking for removal",
        "stscurate publish RUN --to FOLDER --title demo --licence cc-by-4.0 --language en --language no\n",
    ):
        assert line in card
    assert "\n\n\n" not in card
    assert "/tmp" not in card


def test_the_words_of_each_prompt_stand_beside_the_hash_that_votes_name(card: str, tmp_path: Path) -> None:
    assert "What they were asked" not in card
    words = {"system": "Rate it.\n", "user": "<a>{text1}</a>\n````\n{text2}", "yes": ["yes", "ja"], "fenced": True}
    examples = [{"text1": "a", "text2": "b", "answer": "5"}]
    with Run.open(tmp_path / "demo") as run:
        run.keep_prompts({"5eed": {**words, "examples": examples}, "0000": {"system": "of no vote"}})
        publish_folder(run, tmp_path / "again", licence="CC-BY-4.0", language=["en"])
    text = (tmp_path / "again" / "README.md").read_text()
    told = "system: Rate it.\n\nuser: <a>{text1}</a>\n` ` ` `\n{text2}\n\nyes: yes, ja\n\nexamples: 1\n````\n"
    assert (
        f"What they were asked about the two texts of a pair, by the prompt's hash:\n\n`5eed`\n\n````text\n{told}"
        in text
    )
    assert "of no vote" not in text
    with Run.open(tmp_path / "demo") as run:
        run.keep_prompts({"ffff": {"system": "Another."}})
        assert list(run.prompts) == ["0000", "5eed", "ffff"]


def test_a_cascade_says_who_was_asked_about_how_much(card: str, tmp_path: Path) -> None:
    assert "asked about" not in card
    with Run.open(tmp_path / "demo", replace=True) as run:
        votes = run.table("votes")
        settings = {"cascade": {"share": 0.25, "dear": ["large"]}}
        stage = run.stage("votes", tables=["votes"], inputs={}, settings=settings)
        tally = Tally(rows_in=8)
        tally.count("pairs_asked_about", "small", 8)
        tally.count("pairs_asked_about", "large", 2)
        stage.write(0, {"votes": votes}, tally)
        stage.commit()
        publish_folder(run, tmp_path / "again", licence="CC-BY-4.0", language=["en"])
    text = (tmp_path / "again" / "README.md").read_text()
    assert "only about the pairs where those disagree or doubt most" in text
    assert "| large | 2 | 25 % |" in text
    assert "| small | 8 | 100 % |" in text


def test_which_calibration_chose_pairs_and_how_negatives_were_mined_stand_on_the_card(
    card: str, tmp_path: Path
) -> None:
    assert "Cosines lean" not in card
    assert "a span left out or masked" in card
    fitted = {"method": "s-norm", "model": "a-model", "corpus": "texts.txt"}
    with Run.open(tmp_path / "demo", replace=True) as run:
        triplets = run.table("triplets")
        stage = run.stage("triplets", tables=["triplets"], inputs={}, settings={"by": "mining", "calibration": fitted})
        stage.write(0, {"triplets": triplets}, Tally())
        stage.commit()
        publish_folder(run, tmp_path / "again", licence="CC-BY-4.0", language=["en"])
    text = " ".join((tmp_path / "again" / "README.md").read_text().split())
    assert "those of a-model were corrected by s-norm, fitted to texts.txt, before they chose pairs" in text
    assert "texts that a model finds near the anchor" in text
    assert "a span left out or masked" not in text
    assert "`stscurate mine PAIRS --out RUN` with seed 0" in text


def test_title_with_markup_stays_one_line_of_text(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair("p", "a", "b", label=1)])
        publish_folder(run, tmp_path / "set", licence="mit", title='Pairs: "two"\n---\n| <b>')
    card = (tmp_path / "set" / "README.md").read_text()
    assert read_front_matter(card)["pretty_name"] == 'Pairs: "two"\n---\n| <b>'
    assert '\n# Pairs: "two" --- \\| &lt;b>\n' in card


def test_length_and_wording_that_tell_the_score_stand_on_the_card(tmp_path: Path) -> None:
    rows = [pair(f"p{n}", "x" * (n + 1), "y" * (n + 1), score=n / 40, split="train") for n in range(40)]
    rows += [pair(f"q{n}", f"few {n}", "pairs", score=0.5, split="test") for n in range(19)]
    with Run.open(tmp_path / "run") as run:
        write_pairs(run, rows)
        publish_folder(run, tmp_path / "set", licence="mit")
    card = (tmp_path / "set" / "README.md").read_text()
    # the longer, the more alike; both equally long; no letter in common; of 19 pairs nothing is said
    assert "shared letters |\n| --- | --- | --- | --- | --- |\n| train | 40 | 1.000 | - | - |\n\n<!--" in card


def test_key_that_stands_twice_is_refused() -> None:
    text = "---\nlicense: mit\nlanguage:\n- en\nlicense: apache-2.0\n---\n"
    assert yaml.safe_load(text.split("---\n")[1])["license"] == "apache-2.0"  # what PyYAML would make of it
    with pytest.raises(InputError, match="key 'license' stands twice"):
        read_front_matter(text)


def test_card_without_front_matter_is_refused() -> None:
    with pytest.raises(InputError, match="doesn't begin with YAML"):
        read_front_matter("# A title\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("license: cc-by-4.0", "license: cc-by", "licence 'cc-by' isn't known to the Hub"),
        ("- en\n", "- english\n", "Language 'english' isn't a code"),
        ("  default: true\n", "", "names 0 default configs"),
        ("- 'no'\n", "- xx\n", "Language 'xx' isn't a code"),
        (
            "- sentence-similarity\n",
            "- similarity\n",
            "task_categories 'similarity' isn't known to the Hub: use some of",
        ),
        ("task_ids:\n- semantic-", "task_ids:\n- ", "task_ids 'similarity-scoring' isn't known"),
        ("- n<1K\n", "- n<2K\n", "size_categories 'n<2K' isn't known"),
        ("- found\n", "- models\n", "annotations_creators 'models' isn't known"),
        ("config_name: gis\n", "config_name: all\n", "can't load a config named 'all'"),
        ("config_name: gis\n", "config_name: x/y\n", "can't load a config named 'x/y'"),
        ("config_name: gis\n", "config_name: c*\n", r"can't load a config named 'c\*'"),
        ("split: validation\n", "split: dev-1\n", "can't load a split named 'dev-1'"),
        ("split: validation\n", "split: all\n", "can't load a split named 'all'"),
        ("config_name: gis\n", "config_name: pairs\n", "has the config pairs twice"),
        ("num_examples: 4", "num_examples: 5", r"says 5 rows for data/pairs/train-\*, the files hold 4"),
    ],
)
def test_check_finds_what_the_hub_would_refuse(card: str, tmp_path: Path, old: str, new: str, message: str) -> None:
    check_card(tmp_path / "set")
    (tmp_path / "set" / "README.md").write_text(card.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        check_card(tmp_path / "set")


@pytest.mark.parametrize(
    ("rows", "category"),
    [(0, "n<1K"), (999, "n<1K"), (1_000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**6, "1M<n<10M"), (10**12, "n>1T")],
)
def test_size_category(rows: int, category: str) -> None:
    assert size_category(rows) == category


def test_how_pairs_were_made_and_how_long_their_texts_are_stands_on_the_card(
    tmp_path: Path, sample_issues: Path, tiny_model: Path
) -> None:
    cards = {}
    by_both: dict[str, Any] = {"encoder_share": 0.25, "encoder": str(tiny_model), "ceiling": 0.9}
    for name, mined in (("words", {}), ("both", by_both)):
        with Run.open(tmp_path / name) as run:
            collect_issues(run, sample_issues)
            make_pairs(run, negatives=1.5, near_duplicates=0.7, tokenizer=str(tiny_model), **mined)
            publish_folder(run, tmp_path / f"{name} set", licence="mit", texts=True, accept=["licence"])
            rows = run.table("pairs").to_pylist()
        cards[name] = (tmp_path / f"{name} set" / "README.md").read_text()
        tokens = {row[f"text{side}"]: row[f"tokens{side}"] for row in rows for side in (1, 2)}
        assert f"the tokenizer `tiny-encoder`. Of the {len(tokens)} different texts" in cards[name]
        for limit in (128, 256, 512):
            over = sum(count > limit for count in tokens.values())
            share = f"{100 * over / len(tokens):.1f}".removesuffix(".0")
            assert f"| {limit} | {over} | {share} % |" in cards[name]
    for card in cards.values():
        assert "For each positive pair of a split 1.500 negative ones were wanted: 50 % neighbours by BM25,\n" in card
        assert "similarity of five-word sequences from 0.700 on are near duplicates" in card
    told = "25 % neighbours by tiny-encoder (with it, no negative's cosine is 0.900 or more),\n"
    assert [told in cards[name] for name in ("words", "both")] == [False, True]
    assert ["chosen by tiny-encoder" in cards[name] for name in ("words", "both")] == [False, True]
