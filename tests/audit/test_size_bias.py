"""The audit of size bias, held to slow loops over the model's own vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stscurate.audit.size_bias import Corpus, Settings, audit, read_corpus
from stscurate.audit.size_bias.corpus import controls, pairs_within, word_counts
from stscurate.audit.size_bias.figure import _false_positives
from stscurate.audit.size_bias.lengths import Binned, by_length, hubs
from stscurate.audit.size_bias.report import table_rows
from stscurate.errors import InputError, ServiceError
from stscurate.methods.hubs import k_occurrence, skewness
from stscurate.records import Tally
from stscurate.services.encoder import Encoder
from tests.conftest import Command
from tests.methods.test_cosines import rows
from tests.services.embeddings_server import Answer, Body, embeddings_server
from tests.tiny_models import SENTENCES

PLAIN = [sentence.rstrip(".") for sentence in SENTENCES]
DOCUMENTS = [
    " ".join(f"{PLAIN[(number + part) % len(PLAIN)].capitalize()}." for part in range(1 + number % 3))
    for number in range(30)
]


def file_of(folder: Path, texts: list[str]) -> Path:
    path = folder / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read_corpus(file_of(tmp_path_factory.mktemp("corpus"), DOCUMENTS))


@pytest.fixture(scope="module")
def results(corpus: Corpus, tiny_model: Path) -> dict[str, Any]:
    return audit(corpus, Settings(str(tiny_model), controls=25))


def unlike(matrix: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(matrix[~np.eye(len(matrix), dtype=bool)])


def test_sets_have_the_moments_of_all_their_pairs(results: dict[str, Any], corpus: Corpus, tiny_model: Path) -> None:
    encoder = Encoder(str(tiny_model))
    documents, sentences = (encoder.encode(texts).astype(float) for texts in (corpus.documents, corpus.flat))
    long = encoder.encode(["\n".join(DOCUMENTS[at : at + 10]) for at in (0, 10, 20)]).astype(float)
    means = documents.reshape(3, 10, -1).mean(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    expected = [
        ("documents", unlike(documents @ documents.T)),
        ("sentences", unlike(sentences @ sentences.T)),
        ("documents x sentences", (documents @ sentences.T).ravel()),
        ("10 documents joined", unlike(long @ long.T)),
        ("10 documents, mean of their vectors", unlike(means @ means.T)),
    ]
    assert [row["set"] for row in results["sets"]] == [name for name, _ in expected]
    for row, (_, cosines) in zip(results["sets"], expected, strict=True):
        assert row["pairs"] == len(cosines) == sum(row["histogram"])
        assert row["mean"] == pytest.approx(cosines.mean(), abs=1e-6)
        assert row["sd"] == pytest.approx(cosines.std(), abs=1e-4)
    base = results["sets"][1]
    assert base["shift"] == 0
    assert results["sets"][0]["shift"] == pytest.approx((results["sets"][0]["mean"] - base["mean"]) / base["sd"])


def test_truncation_is_told(results: dict[str, Any], corpus: Corpus, tiny_model: Path) -> None:
    cut = Encoder(str(tiny_model)).cut(corpus.documents)
    assert results["sets"][0]["texts_cut"] == pytest.approx((cut > 0).mean())
    assert results["sets"][3]["texts_cut"] == 1.0
    assert (results["reads"], results["length_unit"], results["sentence_splitter"]) == (64, "tokens", "rules")


def test_controls_change_length_alone_or_length_and_content(corpus: Corpus) -> None:
    whole = [f"{text} {' '.join(f'word{number}' for number in range(120))}" for text in corpus.documents]
    long = Corpus("x", "", whole, corpus.sentences, Tally())
    found = {(kind, what): texts for kind, what, texts in controls(long, 25, 0)}
    assert [len(texts) for texts in found.values()] == [25] * 12
    assert {tuple(word_counts(found["cut", f"{words} words"])) for words in (5, 120)} == {(5,) * 25, (120,) * 25}
    assert all(a.startswith(b) for a, b in zip(found["cut", "40 words"], found["cut", "20 words"], strict=True))
    once, twice = found["repeated", "1 time"], found["repeated", "2 times"]
    assert twice == [f"{text} {text}" for text in once]
    assert found["joined", "1 sentence"] == once
    assert all(
        a.startswith(b) for a, b in zip(found["joined", "8 sentences"], found["joined", "4 sentences"], strict=True)
    )
    assert word_counts(["他来了。", "two words"]).tolist() == [4, 2]


def test_sentences_of_the_controls_are_drawn_alike_from_short_and_long_documents() -> None:
    """Twenty documents of a sentence beside twenty of nine: a tenth of the sentences are of the first kind."""
    sentences = [[f"alone {number}"] for number in range(20)]
    sentences += [[f"one of {number} {at}" for at in range(9)] for number in range(20)]
    corpus = Corpus("x", "", [" ".join(own) for own in sentences], sentences, Tally())
    drawn = {what: texts for kind, what, texts in controls(corpus, 200, 0) if kind == "joined"}["1 sentence"]
    assert len(drawn) == 200
    assert 0.03 < np.mean([text.startswith("alone") for text in drawn]) < 0.18  # by documents it would be a half


def binned(number: int = 120) -> tuple[Binned, NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    vectors, lengths = rows(number), np.arange(number, dtype=np.int64) // 2
    groups = np.arange(number, dtype=np.int64) // 3
    return Binned.of(vectors, lengths, pairs_within(groups)), vectors, lengths, groups


def test_false_positives_and_thresholds_are_those_of_a_loop_without_pairs_of_one_document() -> None:
    parts, vectors, lengths, groups = binned()
    found = by_length(parts, exact_up_to=1_000, seed=0)
    called = {at: row["called"] for row in found["bins"] for at in range(row["least"], row["greatest"] + 1)}
    own: dict[str, list[float]] = {}
    order = ["short", "middle", "long"]
    for i in range(120):
        for j in range(120):
            if groups[i] != groups[j]:
                one, other = sorted((called[int(lengths[i])], called[int(lengths[j])]), key=order.index)
                own.setdefault(f"{one} with {other}", []).append(float(vectors[i] @ vectors[j]))
    whole = np.concatenate([np.array(cosines) for cosines in own.values()])
    assert found["thresholds"]["5.0%"] == pytest.approx(np.quantile(whole, 0.95), abs=2e-3)
    assert {row["band"]: row["pairs"] for row in found["bands"]} == {name: len(own[name]) for name in own}
    for row in found["bands"]:
        cosines = np.array(own[row["band"]])
        share = np.mean(cosines >= found["thresholds"]["5.0%"])
        assert row["false positives at 5.0%"] == pytest.approx(share, abs=2 / len(cosines))
        assert np.mean(cosines >= row["threshold for 5.0%"] + 1e-4) <= 0.05
        assert np.mean(cosines >= row["threshold for 5.0%"] - 2e-4) > 0.05
    assert len(found["mean"]) == 10
    assert [row["texts"] for row in found["bins"]] == [12] * 10


def test_drawn_distributions_are_near_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    from stscurate.audit.size_bias import lengths as module

    monkeypatch.setattr(module, "DRAWN", 50_000)
    parts = Binned.of(rows(120), np.arange(120, dtype=np.int64) // 2, np.zeros((0, 2), dtype=np.int64))
    exact, drawn = (by_length(parts, exact_up_to=limit, seed=1) for limit in (120, 100))
    assert (exact["bound"], exact["mean"]) == (0.0, drawn["mean"])
    assert 0 < drawn["bound"] < 0.007
    for one, other in zip(exact["bands"], drawn["bands"], strict=True):
        assert one["band"] == other["band"]
        assert one["false positives at 5.0%"] == pytest.approx(other["false positives at 5.0%"], abs=0.02)


def test_hubs_are_counted_as_a_sort_of_all_neighbours_has_them() -> None:
    parts, vectors, lengths, groups = binned(60)
    expected = np.zeros(60, dtype=np.int64)
    for i in range(60):
        others = [j for j in range(60) if groups[j] != groups[i]]
        for j in sorted(others, key=lambda j: -float(vectors[i] @ vectors[j]))[:10]:
            expected[j] += 1
    assert k_occurrence(vectors, 10, pairs_within(groups)).tolist() == expected.tolist()
    found = hubs(parts, lengths, exact_up_to=100, seed=0)
    assert found["most"] == expected.max()
    assert found["skewness"] == pytest.approx(skewness(expected))
    assert hubs(parts, lengths, exact_up_to=40, seed=0)["texts"] == 40
    assert skewness(np.array([1, 1, 1, 5])) == pytest.approx(6 / 3**1.5)  # deviations -1, -1, -1, 3: 24/4 over 3^1.5
    assert skewness(np.array([2, 2])) == 0


@pytest.mark.parametrize(
    ("texts", "told"), [(["one text"], "has one text in it: a cosine takes two"), (["", "  "], "has no text in it")]
)
def test_too_few_texts_are_refused(texts: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read_corpus(file_of(tmp_path, texts))


def test_empty_texts_are_dropped_and_repeated_ones_counted(tmp_path: Path) -> None:
    found = read_corpus(file_of(tmp_path, ["a cat", "", "a dog", "a cat"]))
    assert found.documents == ["a cat", "a dog", "a cat"]
    assert found.tally.dropped == {"empty_text": 1}
    assert found.tally.counts["texts"] == {"repeated": 1}


def test_texts_of_one_length_are_refused(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(InputError, match=r"All 3 texts have the same length \(4\)"):
        audit(read_corpus(file_of(tmp_path, ["a cat"] * 3)), Settings(str(tiny_model)))


def test_single_sentences_are_compared_with_each_other_alone(tmp_path: Path, tiny_model: Path) -> None:
    found = audit(read_corpus(file_of(tmp_path, PLAIN)), Settings(str(tiny_model), controls=0))
    assert "sentences" not in [row["set"] for row in found["sets"]]
    assert found["controls"] == []
    assert found["hubs"]["texts"] == len(PLAIN)


def test_queries_and_passages_are_compared_where_the_model_has_prompts(
    corpus: Corpus, tiny_model: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(tiny_model), device="cpu")
    plain.prompts = {"query": "a man: ", "passage": "the dogs: "}
    plain.save(str(tmp_path / "prompted"), create_model_card=False)
    row = audit(corpus, Settings(str(tmp_path / "prompted"), controls=0))["sets"][-1]
    assert row["set"] == "sentences as queries x documents as passages"
    one, two = (
        Encoder(str(tmp_path / "prompted"), prompt=name).encode(texts)
        for name, texts in (("query", corpus.flat), ("passage", corpus.documents))
    )
    assert row["mean"] == pytest.approx(float((one @ two.T).mean()), abs=1e-5)


def test_an_api_that_stops_half_way_is_gone_on_with_and_its_cut_is_unknown(
    corpus: Corpus, tmp_path: Path, command: Command
) -> None:
    broken = True

    def stops(body: Body, number: int) -> Answer | None:
        return (402, {"error": "no credit"}, {}) if broken and number >= 1 else None

    texts = file_of(tmp_path, DOCUMENTS)
    with embeddings_server(stops) as server:
        call = (
            "audit",
            "size-bias",
            texts,
            "--model",
            f"{server.url}#m",
            "--out",
            tmp_path / "out",
            "--batch-size",
            8,
        )
        stopped = command(*call)
        assert (stopped.exit_code, "credit is used up" in stopped.stderr) == (1, True)
        broken = False
        asked = len(server.texts)
        done = command(*call)
    assert done.exit_code == 0, done.stderr
    assert "How much of the texts the model reads is unknown" in done.stdout
    assert set(server.bodies[0]["input"]).isdisjoint(server.texts[asked:])  # what came back before the stop
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (found["length_unit"], found["reads"], found["sets"][0]["texts_cut"]) == ("words", None, None)


def test_late_chunks_and_two_tasks_are_asked_of_an_api(corpus: Corpus) -> None:
    with embeddings_server() as server:
        late = audit(corpus, Settings(f"{server.url}#m", controls=0, late_chunking=True))
        plain = audit(corpus, Settings(f"{server.url}#m", controls=0, tasks=("query", "passage")))
    assert late["sets"][1]["mean"] > plain["sets"][1]["mean"] + 0.01  # that server's chunks share their document's mean
    assert late["sets"][0]["mean"] == pytest.approx(plain["sets"][0]["mean"])
    assert plain["sets"][-1]["set"] == "sentences as queries x documents as passages"
    assert {body.get("task") for body in server.bodies} == {None, "query", "passage"}


def test_a_vector_that_is_zero_is_told(corpus: Corpus) -> None:
    def zero(body: Body, number: int) -> Answer:
        return 200, {"data": [{"index": at, "embedding": [0.0] * 4} for at, _ in enumerate(body["input"])]}, {}

    with embeddings_server(zero) as server, pytest.raises(ServiceError, match="a zero vector for text 0"):
        audit(corpus, Settings(f"{server.url}#m"))


def test_no_bars_label_lies_on_the_line_of_what_was_promised() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    times = [0.3, 0.55, 0.75, 0.85, 0.95, 1.0, 1.2, 3.2]
    bands = [
        {"band": f"b{at}", "false positives at 5.0%": 0.05 * x, "false positives at 0.1%": 0.001 * x}
        for at, x in enumerate(times)
    ]
    _false_positives(axes, {"by_length": {"bands": bands}})
    figure.canvas.draw()
    line = axes.transData.transform((0, 1))[1]
    labels = [text.get_window_extent() for text in axes.texts]
    assert len(labels) == 16
    assert [box for box in labels if box.y0 < line < box.y1] == []


def test_the_folder_holds_tables_and_a_figure_and_is_found_finished(
    command: Command, tmp_path: Path, tiny_model: Path
) -> None:
    texts = file_of(tmp_path, [*DOCUMENTS, ""])
    call = ("audit", "size-bias", texts, "--model", tiny_model, "--controls", 25, "--out", tmp_path / "out")
    first = command(*call)
    assert first.exit_code == 0, first.stderr
    assert "empty text 1" in first.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"manifest.json", "results.json", "results.md", "size_bias.png", "size_bias.svg"}
    assert (tmp_path / "out" / "size_bias.png").read_bytes()[:4] == b"\x89PNG"
    assert "| documents x sentences |" in (tmp_path / "out" / "results.md").read_text()
    assert "finished before" in command(*call).stdout
    assert command(*call, "--seed", 1).exit_code == 2
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert command(*call[:-1], tmp_path / "again").exit_code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == kept


def test_a_bin_of_one_length_has_one_number_as_its_name() -> None:
    bins = [{"least": 9, "greatest": 12}, {"least": 13, "greatest": 13}]
    found = {"bins": bins, "mean": [[0.5, 0.25], [0.25, None]], "sd": [[0.1, 0.2], [0.2, None]]}
    assert table_rows({"by_length": found, "length_unit": "tokens"}) == [
        {"tokens": "9-12", "9-12": "0.50 ± 0.10", "13": "0.25 ± 0.20"},
        {"tokens": "13", "9-12": "0.25 ± 0.20"},
    ]
