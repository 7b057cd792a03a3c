"""What is told besides the whole: parts, differences between models, means, thresholds from another set, density."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from stscurate.errors import InputError
from stscurate.evaluation import GoldSet, Wanted, evaluate_all
from stscurate.evaluation.comparing import compare
from stscurate.evaluation.measuring import Options, measure, measure_parts
from stscurate.evaluation.metrics.bands import by_overlap, by_tokens, word_overlap
from stscurate.evaluation.metrics.binary import choose
from stscurate.evaluation.metrics.density import densities
from stscurate.evaluation.scoring import Scored
from stscurate.evaluation.tasks import Grouped, Labelled, Probe, Retrieval
from stscurate.evaluation.variants import Variants
from tests.conftest import Command
from tests.tiny_models import SENTENCES, tiny_sentence_transformer

N = 80
NOISE = np.random.default_rng(0)
GOLD = NOISE.integers(0, 6, N) / 5
SET = GoldSet(
    "made", [(f"left {n}", f"right {n}") for n in range(N)], GOLD, {}, subsets=("a",) * 30 + ("b",) * 48 + ("c",) * 2
)
CLEAN = np.arange(N) % 3 > 0


def number(value: float | None) -> float:
    assert value is not None
    return value


def scored(noise: float, seed: int, gold: GoldSet = SET, clean: np.ndarray | None = None) -> Scored:
    similarities = np.clip(0.4 * gold.gold + noise * np.random.default_rng(seed).normal(size=N), -1, 1)
    return Scored(f"model {seed}", gold, similarities, np.arange(N) * 10, 0.0, clean)


def test_parts_have_the_numbers_of_their_rows_and_too_few_have_none() -> None:
    one = scored(0.1, 1, clean=CLEAN)
    parts = {(part.kind, part.part): part for part in measure_parts(one, Options(100, subsets=True, bands=True))}
    a, c = parts["subset", "a"], parts["subset", "c"]
    assert a.spearman == pytest.approx(spearmanr(one.similarities[:30], GOLD[:30]).statistic)
    assert (a.full.rows, a.rows_clean) == (30, 20)
    clean = np.arange(N)[:30][CLEAN[:30]]
    assert a.spearman_clean == pytest.approx(spearmanr(one.similarities[clean], GOLD[clean]).statistic)
    assert (c.full.rows, c.spearman, c.full.low) == (2, None, None)
    assert [name for kind, name in parts if kind == "tokens"] == [
        "up to 16",
        "17-32",
        "33-64",
        "65-128",
        "129-256",
        "257-512",
        "above 512",
    ]
    assert parts["tokens", "257-512"].full.rows == 26  # 260 to 510
    assert sum(part.full.rows for (kind, _), part in parts.items() if kind == "word overlap") == N
    assert measure_parts(one, Options(100)) == []


def test_each_row_is_in_one_band_of_each_kind() -> None:
    gold = replace(SET, pairs=[(f"a b c d {n}", "a b c d" if n % 2 else "x y") for n in range(N)])
    one = scored(0.1, 1, gold)
    for find in (by_tokens, by_overlap):
        assert np.sum([rows for _, rows in find(one)], axis=0).tolist() == [1] * N
    assert word_overlap([("The cat sat.", "the CAT"), ("a", "b"), ("!", "?")]).tolist() == [2 / 3, 0, 0]
    assert word_overlap([("猫と犬", "猫"), ("same", "same")]).tolist() == [1 / 3, 1]


def test_a_comparison_is_that_of_a_slow_loop_over_the_same_draws() -> None:
    one, two = scored(0.3, 1), scored(0.1, 2, clean=CLEAN)
    full, clean = compare(one, two, Options(200, seed=5))
    assert (full.clean, full.rows, clean.clean, clean.rows) == (False, 80, True, int(CLEAN.sum()))
    for found, rows in ((full, np.arange(N)), (clean, np.flatnonzero(CLEAN))):
        n = len(rows)
        draws = rows[np.random.default_rng(5).integers(n, size=(200, n))]
        rho = [[spearmanr(side.similarities[draw], GOLD[draw]).statistic for draw in draws] for side in (one, two)]
        differences = np.subtract(rho[1], rho[0])
        whole = [spearmanr(side.similarities[rows], GOLD[rows]).statistic for side in (one, two)]
        assert (found.first_value, found.second_value) == pytest.approx(whole)
        assert found.difference == pytest.approx(whole[1] - whole[0])
        assert (found.low, found.high) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])))
        smaller = min((differences <= 0).sum(), (differences >= 0).sum())
        assert found.p == pytest.approx(2 * (1 + smaller) / 201)


def test_a_model_against_itself_differs_by_nothing_and_parts_are_compared_too() -> None:
    binary = replace(SET, gold=(GOLD > 0.5).astype(float))
    one = scored(0.3, 1, binary)
    found = list(compare(one, one, Options(100, subsets=True)))
    assert {(each.part, each.metric) for each in found} == {
        (part, metric) for part in ("", "a", "b", "c") for metric in ("spearman", "average_precision")
    }
    assert {(each.difference, each.low, each.high, each.p) for each in found if each.part != "c"} == {(0, 0, 0, 1)}
    assert {each.p for each in found if each.part == "c"} == {None}


def test_a_threshold_of_dev_is_held_to_the_set() -> None:
    binary = replace(SET, gold=(GOLD > 0.5).astype(float))
    dev, test = scored(0.2, 3, binary), scored(0.2, 4, binary)
    chosen = choose(dev.gold.gold, dev.similarities)
    found = measure(test, Options(100), chosen).result.full
    right = np.mean((test.similarities >= chosen.accuracy) == (binary.gold == 1))
    assert found.accuracy_transferred == pytest.approx(right)
    assert number(found.accuracy_transferred) <= number(found.accuracy)
    yes = test.similarities >= chosen.f1
    hits = (yes & (binary.gold == 1)).sum()
    assert found.f1_transferred == pytest.approx(2 * hits / (yes.sum() + binary.gold.sum()))


def test_densities_count_each_pair_once_in_the_band_of_its_gold() -> None:
    found = densities(scored(0.2, 1), bins=20)
    assert [one.low for one in found] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert [one.high for one in found] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1])
    counted = [int(np.sum(band == GOLD * 5)) for band in range(6)]
    assert [int(one.pairs.sum()) for one in found] == [*counted[:4], counted[4] + counted[5]]
    assert [float((one.heights * np.diff(one.edges)).sum()) for one in found] == pytest.approx([1] * 5)
    logits = replace(scored(0.2, 1), similarities=GOLD * 12 - 3)
    assert (densities(logits)[0].edges[0], densities(logits)[0].edges[-1]) == (-3, 9)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    return [str(tiny_sentence_transformer(folder / f"seed-{seed}", seed=seed)) for seed in range(3)]


PAIRS = [(left, right) for place, left in enumerate(SENTENCES) for right in SENTENCES[place + 1 :]]
ONE = GoldSet("one", PAIRS, np.random.default_rng(1).random(len(PAIRS)).round(1), {}, collection="both")
TWO = GoldSet("two", PAIRS[:40], np.random.default_rng(2).random(40).round(1), {}, collection="both")


def test_means_are_over_seeds_with_their_deviation_and_over_sets_with_an_interval(models: list[str]) -> None:
    wanted = Wanted(resamples=100, groups={"tiny": [0, 1, 2]}, paired=True)
    found = evaluate_all(models, [ONE, TWO], wanted)
    rho = np.array([one.spearman for one in found.results], dtype=float).reshape(3, 2)
    sets = [mean for mean in found.means if mean.over == "sets"]
    assert [(mean.model, mean.set, mean.count) for mean in sets] == [(f"seed-{n}", "both", 2) for n in range(3)]
    assert [mean.value for mean in sets] == pytest.approx(rho.mean(axis=1).tolist())
    for mean in sets:
        assert number(mean.low) < number(mean.value) < number(mean.high)
    seeds = [mean for mean in found.means if mean.over == "models"]
    assert [(mean.model, mean.set, mean.count) for mean in seeds] == [("tiny", "one", 3), ("tiny", "two", 3)]
    assert [mean.value for mean in seeds] == pytest.approx(rho.mean(axis=0).tolist())
    assert [mean.deviation for mean in seeds] == pytest.approx(rho.std(axis=0, ddof=1).tolist())
    pairs = [(one.first, one.second, one.set) for one in found.comparisons]
    assert pairs == [("seed-0", f"seed-{n}", name) for n in (1, 2) for name in ("one", "two")]
    assert found.comparisons[3].difference == pytest.approx(rho[2, 1] - rho[0, 1])


def test_each_number_of_binary_sets_and_tasks_has_its_mean_over_a_group(models: list[str]) -> None:
    binary = replace(ONE, name="binary", gold=(ONE.gold > 0.5).astype(float), collection=None)
    dev = replace(binary, pairs=PAIRS[:40], gold=binary.gold[:40])
    tasks: list[Probe | Retrieval] = [
        Probe(Labelled("texts", list(SENTENCES), ["a", "b"], np.arange(12) % 2, (), {})),
        Retrieval(Grouped("texts", list(SENTENCES), np.arange(12) // 3, {})),
    ]
    wanted = Wanted(
        resamples=100,
        groups={"tiny": [0, 1, 2]},
        dev=dev,
        tasks=tasks,
        train_texts=SENTENCES[:1],
        variants=Variants(dimensions=(4,)),
    )
    found = evaluate_all(models, [ONE, binary], wanted)
    expected: dict[tuple[str, str, str, str], list[tuple[float | None, float | None]]] = {}
    for one in found.results:
        name = "tiny, 4 dimensions" if one.variant else "tiny"
        for metric in ("spearman", "average_precision", "f1", "accuracy", "f1_transferred", "accuracy_transferred"):
            if (value := getattr(one.full, metric)) is not None:
                expected.setdefault((name, one.set, "set", metric), []).append((value, getattr(one.clean, metric)))
    for task in found.tasks:
        name = "tiny, 4 dimensions" if task.variant else "tiny"
        expected.setdefault((name, task.set, task.kind, task.metric), []).append((task.value, task.value_clean))
    seeds = {(one.model, one.set, one.kind, one.metric): one for one in found.means if one.over == "models"}
    assert seeds.keys() == expected.keys()
    assert len(seeds) == 2 * (1 + 6 + 1 + 8)
    for key, values in expected.items():
        mean, (full, clean) = seeds[key], np.array(values, dtype=float).T
        assert mean.count == 3
        assert [mean.value, mean.deviation] == pytest.approx([full.mean(), full.std(ddof=1)])
        assert [mean.value_clean, mean.deviation_clean] == pytest.approx([clean.mean(), clean.std(ddof=1)])


def test_a_set_without_subsets_is_noted_where_they_are_asked_for(models: list[str]) -> None:
    parted = replace(TWO, subsets=("a",) * 20 + ("b",) * 20)
    found = evaluate_all(models[:1], [ONE, parted], Wanted(resamples=100, subsets=True))
    assert [(part.set, part.part) for part in found.parts] == [("two", "a"), ("two", "b")]
    assert [note for note in found.notes if "--subsets" in note] == [
        "one: no subsets are told there, so --subsets gives nothing of it."
    ]


def test_too_few_pairs_for_an_interval_are_noted(models: list[str]) -> None:
    parted = replace(ONE, name="parted", subsets=("few",) * 9 + ("many",) * 57)
    few = replace(TWO, name="few", pairs=PAIRS[:9], gold=TWO.gold[:9])
    wanted = Wanted(resamples=100, subsets=True, train_texts=SENTENCES[:8])
    notes = evaluate_all(models[:1], [parted, few], wanted).notes
    assert "few: of 9 pairs an interval tells little." in notes
    assert "parted: the parts few have fewer than 10 pairs: intervals tell little there." in notes
    assert "seed-0 on parted: of 6 leak-clean pairs an interval tells little." in notes
    assert "seed-0 on few: of 0 leak-clean pairs no number is taken." in notes
    assert not [note for note in evaluate_all(models[:1], [ONE], Wanted(resamples=100)).notes if "little" in note]


def test_models_of_the_same_name_are_told_apart(models: list[str]) -> None:
    found = evaluate_all([models[0], models[0]], [ONE], Wanted(resamples=100))
    assert [one.model for one in found.results] == ["seed-0", "seed-0 (2)"]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(paired=True), "name at least two"),
        (Wanted(dev=ONE), "--dev one is graded"),
        (Wanted(dev=replace(ONE, name="dev", gold=(ONE.gold > 0.5).astype(float))), "no --set has gold 0 and 1"),
    ],
)
def test_what_cannot_be_told_is_refused(models: list[str], wanted: Wanted, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_all(models[:1], [ONE], wanted)
    with pytest.raises(InputError, match="stands 2 times"):
        evaluate_all(models[:1], [ONE, ONE], Wanted())
    probe = Probe(Labelled("texts", list(SENTENCES), ["a", "b"], np.arange(12) % 2, (), {}))
    with pytest.raises(InputError, match="--subsets and --density: of pairs alone, and no --set is named"):
        evaluate_all(models[:1], [], Wanted(subsets=True, density=True, tasks=[probe]))


def test_different_files_of_one_name_are_told_apart(tmp_path: Path, command: Command, models: list[str]) -> None:
    for folder, shift in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        rows = [f"{left}\t{right}\t{(n + shift) % 5 / 4}" for n, (left, right) in enumerate(PAIRS)]
        (tmp_path / folder / "ok.tsv").write_text("\n".join(["text1\ttext2\tscore", *rows]) + "\n")
        groups = [f"{text} {n}\t{(n + shift) // 2}" for n, text in enumerate(SENTENCES * 2)]
        (tmp_path / folder / "groups.tsv").write_text("\n".join(["text\tgroup", *groups]) + "\n")
        labels = [f"{text} {n}\t{(n + shift) // 3 % 2}" for n, text in enumerate(SENTENCES * 2)]
        (tmp_path / folder / "labels.tsv").write_text("\n".join(["text\tlabel", *labels]) + "\n")

    def given(*folders: str) -> list[object]:
        files = {"--set": "ok.tsv", "--retrieve": "groups.tsv", "--probe": "labels.tsv"}
        return [
            part for folder in folders for option, name in files.items() for part in (option, tmp_path / folder / name)
        ]

    call = ("evaluate", models[0], "--resamples", 100, "--json")
    found = json.loads(command(*call, *given("a", "b"), "--out", tmp_path / "out").stdout)
    alone = [json.loads(command(*call, *given(folder)).stdout) for folder in "ab"]
    assert [one["set"] for one in found["results"]] == ["ok.tsv", "ok.tsv (2)"]
    assert [one["spearman"] for one in found["results"]] == [one["results"][0]["spearman"] for one in alone]
    tasks = {(one["set"], one["metric"]): one["value"] for one in found["tasks"]}
    assert tasks == {
        (f"{one['set']}{more}", one["metric"]): one["value"]
        for result, more in zip(alone, ("", " (2)"), strict=True)
        for one in result["tasks"]
    }
    done = command(*call, *given("a", "a"))
    assert "ok.tsv stands 2 times: name each set once" in done.stderr


def test_options_of_files_alone_are_refused_where_none_is_named(
    tmp_path: Path, command: Command, models: list[str]
) -> None:
    (tmp_path / "stsb-en-test.csv").write_text("A,B,5.0\nB,C,2.5\nD,E,0\n")
    own = tmp_path / "own.csv"
    own.write_text("a,b,s\nA,B,5.0\nB,C,2.5\nD,E,0\n")
    benchmark = ("evaluate", models[0], "--set", f"stsb={tmp_path}", "--resamples", 100)
    for options, told in [
        (("--scale", "0-5"), "--scale is of your own files"),
        (("--columns", "a,b,s"), "--columns is of your own files"),
        (("--accept", "corpus"), "--accept is of a --calibration"),
    ]:
        done = command(*benchmark, *options)
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr
    done = command(*benchmark, "--set", own, "--columns", "text1=a,text2=b,score=s", "--scale", "0-5")
    assert done.exit_code == 0, done.stderr


def test_dev_is_of_other_pairs_and_what_it_shares_is_counted(models: list[str]) -> None:
    test = replace(ONE, name="test", gold=(ONE.gold > 0.5).astype(float))
    turned = [(right.upper(), left) for left, right in PAIRS]
    for dev in (test, replace(test, name="turned", pairs=turned[::-1], gold=test.gold[::-1])):
        with pytest.raises(InputError, match=f"--dev {dev.name} holds the very pairs of --set test"):
            evaluate_all(models[:1], [test], Wanted(dev=dev))
    part = replace(test, name="part", pairs=[*turned[:20], ("other", "pair")], gold=test.gold[:21])
    found = evaluate_all(models[:1], [test], Wanted(resamples=100, dev=part))
    assert [note for note in found.notes if "--dev" in note] == [
        "test: 20 of its 66 pairs stand in --dev part too: its thresholds were chosen on some of what they are held to."
    ]
    apart = replace(part, pairs=[(f"left {n}", "right") for n in range(21)])
    assert not any("--dev" in note for note in evaluate_all(models[:1], [test], Wanted(dev=apart, resamples=100)).notes)


def test_a_group_is_of_several_models_and_has_its_own_name(tmp_path: Path, command: Command, models: list[str]) -> None:
    (tmp_path / "copy").symlink_to(models[0])
    pairs = tmp_path / "pairs.tsv"
    rows = [f"{left}\t{right}\t{n % 5 / 4}" for n, (left, right) in enumerate(PAIRS)]
    pairs.write_text("\n".join(["text1\ttext2\tscore", *rows]) + "\n")
    for groups, told in [
        ((f"x={models[0]},{models[0]}",), f"--group x: {models[0]} twice is one model"),
        ((f"x={models[0]},{tmp_path / 'copy'}",), f"--group x: {models[0]} and {tmp_path / 'copy'} are one model"),
        ((f"x={models[0]},{models[1]}", f"x={models[0]}"), "--group x is given twice"),
    ]:
        done = command("evaluate", "--set", pairs, *(part for group in groups for part in ("--group", group)))
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr


def test_the_command_tells_all_of_it(tmp_path: Path, command: Command, models: list[str]) -> None:
    pairs, train = tmp_path / "pairs.tsv", tmp_path / "train.txt"
    rows = [f"{left}\t{right}\t{int(n % 3 == 0)}" for n, (left, right) in enumerate(PAIRS)]
    pairs.write_text("\n".join(["text1\ttext2\tlabel", *rows]) + "\n")
    (tmp_path / "dev.tsv").write_text("\n".join(["text1\ttext2\tlabel", *rows[:30]]) + "\n")
    train.write_text(SENTENCES[0] + "\n")
    call = ("evaluate", models[0], "--group", f"seeds={models[0]},{models[1]}", "--set", pairs, "--paired", "--bands")
    more = ("--dev", tmp_path / "dev.tsv", "--train", train, "--density", "--out", tmp_path / "out")
    shown = command(*call, *more).stdout
    assert "leak-clean standard deviation" in (tmp_path / "out" / "results.md").read_text()
    for heading in ("Spearman with gold", "Means", "Differences on the same rows", "Pair classification", "Parts"):
        assert heading in shown
    found = json.loads(command(*call, *more, "--json").stdout)
    assert [(one["model"], one["rows_clean"]) for one in found["results"]] == [("seed-0", 55), ("seed-1", 55)]
    assert [(one["metric"], one["clean"]) for one in found["comparisons"] if one["kind"] == "set"] == [
        ("spearman", False),
        ("average_precision", False),
        ("spearman", True),
        ("average_precision", True),
    ]
    assert {one["over"] for one in found["means"]} == {"models"}
    assert {"results.md", "results.parquet", "comparisons.parquet", "means.parquet", "density.png"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert "name one, or several by --group" in command("evaluate", "--set", pairs).stderr
    assert "give it as NAME=VALUE" in command("evaluate", "--set", pairs, "--group", "a").stderr
