"""Negatives by an encoder, the mix of kinds, and the drawing of pairs, held to slow and obvious ways."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stscurate.disk import fingerprint
from stscurate.errors import InputError
from stscurate.methods.calibration import METHODS
from stscurate.methods.calibration.saved import Calibration, digests_of
from stscurate.methods.components import components
from stscurate.pairing import make_pairs
from stscurate.pairing.corpus import Corpus
from stscurate.pairing.negatives import Kind, draw
from stscurate.pairing.neighbours import Encoded, Similarity
from stscurate.records import from_rows
from stscurate.services import encoder
from stscurate.services.encoder import Encoder
from stscurate.services.precision import default_precision
from stscurate.store import Run
from tests.conftest import Command
from tests.pairing.made import Rows, issue, link, paired, words
from tests.tiny_models import SENTENCES


def sentences(seed: int, n: int = 160, repositories: int = 1) -> tuple[Rows, Rows]:
    """Issues of words that the tiny model knows, a third of them duplicates of others, some naming others."""
    generator = random.Random(seed)
    known = [word for text in SENTENCES for word in text.rstrip(".?").split()]
    rows: Rows = []
    links = []
    for number in range(1, n + 1):
        repository = f"o/r{number % repositories}"
        text = " ".join(generator.sample(known, 9))
        if number > 3 * repositories and number % 3 == 0:
            links.append(link(f"{repository}#{number}", f"{repository}#{number - repositories}"))
        mentions = [f"{repository}#{number - 2 * repositories}"] if generator.random() < 0.2 else []
        rows.append(issue(number, text, repository=repository, mentions=mentions))
    return rows, links


def cosines(rows: Rows, model: Path) -> dict[str, dict[str, float]]:
    names = [f"{row['repository']}#{row['number']}" for row in rows]
    vectors = Encoder(str(model), precision=default_precision()).encode([row["clean_text"] for row in rows])
    table = vectors @ vectors.T
    return {a: {b: float(table[i, j]) for j, b in enumerate(names)} for i, a in enumerate(names)}


def test_an_encoders_negatives_are_near_but_not_the_nearest_and_truly_apart(tmp_path: Path, tiny_model: Path) -> None:
    issues, links = sentences(1)
    options: dict[str, Any] = {"lexical_share": 0, "encoder_share": 1, "encoder": str(tiny_model), "shares": (1, 0, 0)}
    _, rows = paired(tmp_path, issues, links, ceiling=0.97, **options)
    cosine = cosines(issues, tiny_model)
    names = list(cosine)
    edges = [(names.index(f"o/r0#{row['duplicate']}"), names.index(f"o/r0#{row['canonical']}")) for row in links]
    home = dict(zip(names, components(len(names), edges), strict=True))
    mentions = {f"o/r0#{row['number']}": row["mentions"] for row in issues}
    negatives = [(row["id1"], row["id2"]) for row in rows if row["label"] == 0]
    assert {row["origin"] for row in rows if row["label"] == 0} == {"negative:encoder"}
    assert len(negatives) == sum(row["label"] for row in rows) > 40
    times = Counter(name for pair in negatives for name in pair)
    for pair in negatives:
        ranks = []
        for one, other in (pair, pair[::-1]):
            allowed = [
                name
                for name in names
                if home[name] != home[one]
                and name not in mentions[one]
                and one not in mentions[name]
                and cosine[one][name] < 0.97
            ]
            assert other in allowed
            nearest = sorted(allowed, key=lambda name: (-cosine[one][name], names.index(name)))
            ranks.append((nearest.index(other) + 1, times[one]))
        # from the issue that it was drawn for, the 4th to 20th, but for pairs that had been drawn before
        assert any(3 < rank <= 20 + drawn for rank, drawn in ranks)


def test_with_an_encoder_no_negative_of_any_kind_reaches_the_ceiling(tmp_path: Path, tiny_model: Path) -> None:
    issues, links = sentences(2)
    cosine = cosines(issues, tiny_model)
    middle = float(np.median([value for a, row in cosine.items() for b, value in row.items() if a < b]))
    options = {"lexical_share": 0.4, "encoder_share": 0.3, "encoder": str(tiny_model), "shares": (1, 0, 0)}
    highest = {}
    for ceiling in (middle, 1.0):
        _, rows = paired(tmp_path / str(ceiling), issues, links, ceiling=ceiling, **options)
        found = [row for row in rows if row["label"] == 0]
        assert {row["origin"] for row in found} == {"negative:lexical", "negative:encoder", "negative:random"}
        highest[ceiling] = max(cosine[row["id1"]][row["id2"]] for row in found)
    assert highest[middle] < middle < highest[1.0]


def calibrated(folder: Path, name: str, rows: Rows, model: Path, texts: list[str] | None = None) -> Calibration:
    """Fitted to the issues' texts, and saved."""
    encoder = Encoder(str(model))
    own = [row["clean_text"] for row in rows]
    method = METHODS[name].fit(encoder.encode(own), encoder.token_counts(own))
    folder.mkdir(parents=True)
    about = (encoder.model.name, encoder.model.fingerprint, encoder.reads, "issues")
    Calibration(method, *about, np.sort(digests_of(texts or own))).save(folder)
    return Calibration.load(folder)


def test_a_calibration_says_who_is_near_and_what_is_too_near(tmp_path: Path, tiny_model: Path) -> None:
    issues, links = sentences(6)
    fitted = calibrated(tmp_path / "s-norm", "s-norm", issues, tiny_model)
    texts = [row["clean_text"] for row in issues]
    encoder = Encoder(str(tiny_model), precision=default_precision())
    vectors, lengths = encoder.encode(texts), encoder.token_counts(texts)
    names = [f"o/r0#{row['number']}" for row in issues]
    pairs = {(a, b): (i, j) for i, a in enumerate(names) for j, b in enumerate(names) if i < j}
    left, right = (np.array(side) for side in zip(*pairs.values(), strict=True))
    found = fitted.method.similarity(vectors[left], lengths[left], vectors[right], lengths[right])
    similarity = dict(zip(pairs, found.tolist(), strict=True))
    options: dict[str, Any] = {"encoder_share": 1, "lexical_share": 0, "encoder": str(tiny_model), "shares": (1, 0, 0)}
    ceiling = float(np.quantile(found, 0.97))
    entry, rows = paired(tmp_path / "run", issues, links, calibration=fitted, ceiling=ceiling, **options)
    negatives = [similarity[row["id1"], row["id2"]] for row in rows if row["label"] == 0]
    assert len(negatives) > 40
    assert max(negatives) < ceiling
    assert np.mean(negatives) > np.quantile(found, 0.85)  # of random pairs half would be above the middle
    assert entry.key["settings"]["calibration"] == {
        "method": "s-norm",
        "model": tiny_model.name,
        "corpus": "issues",
    }
    assert entry.key["inputs"]["calibration"] == fingerprint(tmp_path / "s-norm" / "calibration.npz")
    assert entry.tally.counts["encoder"]["issues_ranked_by_s-norm"] == 160
    with pytest.raises(InputError, match="By s-norm similarities aren't cosines, so no ceiling is known"):
        paired(tmp_path / "none", issues, links, calibration=fitted, **options)
    other = calibrated(tmp_path / "other", "length-centering", issues, tiny_model, ["another text"] * 3)
    with pytest.raises(InputError, match="was fitted to issues, which holds 0% of these texts"):
        paired(tmp_path / "other-run", issues, links, calibration=other, **options)
    options["accept_corpus"] = True
    entry, _ = paired(tmp_path / "other-run", issues, links, calibration=other, **options)
    assert entry.key["settings"]["ceiling"] == 0.8  # its similarities are cosines


def test_neighbours_are_by_s_norm_where_a_repository_has_400_issues(tmp_path: Path, tiny_model: Path) -> None:
    issues, links = sentences(7, n=430)
    for row in issues[400:]:
        row["repository"] = "o/small"
    links = [row for row in links if row["duplicate"] <= 400 and row["canonical"] <= 400]
    links.append(link("o/small#402", "o/small#401"))
    corpus = Corpus.of(from_rows(issues, "issues"))
    encoder = Encoder(str(tiny_model))
    vectors = encoder.encode(corpus.texts)
    cosine = vectors @ vectors.T
    own = vectors[:400].astype(np.float64) @ vectors[:400].T  # repositories are in order: o/r0 first
    mu, sd = own.mean(axis=1), own.std(axis=1)
    norm = ((own - mu[:, None]) / sd[:, None] + (own - mu) / sd) / 2
    ways: tuple[tuple[Similarity, Any], ...] = (("auto", norm), ("cosine", cosine[:400, :400].astype(np.float64)))
    for way, expected in ways:
        encoded = Encoded(corpus, encoder, similarity=way)
        ((_, near),) = encoded.ranking(range(400))([7])
        assert expected[7][near[:50]] == pytest.approx(np.sort(np.delete(expected[7], 7))[::-1][:50], abs=1e-3)
        assert encoded.similarity(7, 9) == pytest.approx(cosine[7, 9], abs=1e-6)  # the ceiling looks at the cosine
    encoded = Encoded(corpus, encoder)
    assert (encoded.ranked_by("o/r0"), encoded.ranked_by("o/small")) == (("s-norm", 400), ("cosine", 30))


def test_the_shares_of_the_kinds_hold_over_many_small_repositories(tmp_path: Path, tiny_model: Path) -> None:
    issues, links = sentences(3, n=600, repositories=20)
    options = {"lexical_share": 0.5, "encoder_share": 0.3, "encoder": str(tiny_model), "ceiling": 1.0}
    entry, rows = paired(tmp_path, issues, links, **options)
    assert entry.tally.counts["encoder"] == {"tokens_that_it_reads_of_a_text": 64, "issues_ranked_by_cosine": 600}
    origins = Counter(row["origin"] for row in rows if row["label"] == 0)
    for kind, share in (("lexical", 0.5), ("encoder", 0.3), ("random", 0.2)):
        assert abs(origins[f"negative:{kind}"] / origins.total() - share) < 0.1


def test_vectors_are_kept_for_another_seed_and_split_and_their_order_does_not_matter(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issues, links = sentences(4, repositories=2)
    options: dict[str, Any] = {"encoder_share": 0.5, "encoder": str(tiny_model)}
    for name, rows in (("a", issues), ("b", random.Random(0).sample(issues, len(issues)))):
        paired(tmp_path / name, rows, links, **options)
    one, other = (fingerprint(tmp_path / name / "pairs") for name in "ab")
    assert one == other

    def computed(*_: object) -> None:
        raise AssertionError("a vector is computed again")

    monkeypatch.setattr(encoder, "_encoded", computed)
    with Run.open(tmp_path / "a", replace=True) as run:
        assert make_pairs(run, seed=7, shares=(0.5, 0.0, 0.5), min_chars=30, **options).fresh
    assert fingerprint(tmp_path / "a" / "pairs") != one


def test_without_an_encoder_no_torch_is_loaded(tmp_path: Path) -> None:
    paired(tmp_path / "run", [issue(1), issue(2), issue(3)], [link(2, 1)])
    code = (
        "import sys; from pathlib import Path\n"
        "from stscurate.pairing import make_pairs; from stscurate.store import Run\n"
        "with Run.open(Path(sys.argv[1]), replace=True) as run:\n"
        "    assert make_pairs(run, seed=1).fresh\n"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_where_more_are_wanted_than_there_are_issues_each_gives_several_neighbours(tmp_path: Path) -> None:
    generator = random.Random(5)
    issues = [issue(n, words(generator, 100)) for n in range(1, 41)]
    _, rows = paired(tmp_path, issues, [link(2, 1)], negatives=20, lexical_share=1, shares=(1, 0, 0), near_duplicates=1)
    assert Counter(row["origin"] for row in rows) == {"positive:comment": 1, "negative:lexical": 20}
    other = [({row["id1"], row["id2"]} - {"o/r#1", "o/r#2"}).pop() for row in rows if row["label"] == 0]
    assert len(set(other)) > 10


def test_what_one_kind_lacks_is_drawn_at_random() -> None:
    pool = list(range(30))
    used: set[tuple[int, int]] = set()
    taken = []
    kinds = [
        Kind("few", 0.25, lambda issues: ((at, [29 - at, 0]) for at in issues)),
        Kind("none", 0.5, lambda issues: iter(())),
    ]
    for low, high, kind in draw(pool, [1, 2], lambda *pair: pair not in used, 20, kinds, random.Random(0)):
        used.add((low, high))
        taken.append(kind)
        assert low < high
        assert kind == "random" or (low, high) in ((0, 1), (0, 2))  # of two neighbours the further
    assert Counter(taken) == {"few": 2, "random": 18}
    assert len(used) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_share": -0.1}, r"encoder_share is -0\.1: give a share"),
        ({"encoder_share": 0.6}, r"lexical_share 0\.5 and encoder_share 0\.6 are more than all"),
        ({"encoder_share": 0.5, "ceiling": 0.0}, r"ceiling is 0\.0: give a cosine above 0"),
        ({"encoder_share": 0.5, "encoder": "./nowhere"}, r"There is no model at \./nowhere"),
    ],
)
def test_what_the_encoder_can_not_do_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        paired(tmp_path, [issue(1), issue(2)], [link(2, 1)], **options)


def test_the_command_takes_the_encoders_options_and_names_those_without_use(
    command: Command, tmp_path: Path, sample_issues: Path, tiny_model: Path
) -> None:
    given = ("collect-issues", "--from", sample_issues, "--out", tmp_path / "run")
    for useless in (("--encoder", tiny_model), ("--ceiling", 0.9), ("--similarity", "cosine"), ("--accept", "corpus")):
        result = command(*given, *useless)
        assert result.exit_code == 2
        assert f"{useless[0]} is for neighbours by an encoder: give their share with --encoder-share" in result.stderr
    mined = ("--encoder-share", 0.25, "--encoder", tiny_model, "--ceiling", 1, "--tokenizer", tiny_model)
    missing = command(*given, *mined, "--calibration", tmp_path)
    assert (missing.exit_code, "holds no calibration: name the folder" in missing.stderr) == (2, True)
    assert command(*given, *mined).exit_code == 0
    entry = Run(tmp_path / "run").entries["pairs"]
    expected = {"encoder_share": 0.25, "encoder": tiny_model.name, "ceiling": 1.0, "precision": default_precision()}
    assert entry.key["settings"].items() >= (expected | {"tokenizer": tiny_model.name}).items()
    assert entry.key["inputs"][tiny_model.name] == fingerprint(tiny_model)
    origins = entry.tally.counts["origin"]
    total = sum(rows for origin, rows in origins.items() if origin.startswith("negative"))
    assert abs(origins["negative:encoder"] - total / 4) < 4  # rounded by chance in each of 12 groups
