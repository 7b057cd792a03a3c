"""What the card says of a run, counted from its manifest and tables: plain lists that the template draws."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.manifest import Entry
from stscurate.publishing.layouts import Layout
from stscurate.publishing.lengths import Row, lengths, size_bias
from stscurate.publishing.parts import Parts
from stscurate.records import SCHEMAS
from stscurate.wording import counted

_MOST_REPOSITORIES = 30


def gather(
    entries: Mapping[str, Entry],
    pairs: Parts,
    votes: Iterable[pa.RecordBatch],
    scores: Iterable[pa.RecordBatch],
    published: Sequence[Layout],
    accepted: Mapping[str, int],
    settings: Mapping[str, Any],
    from_issues: bool,
    dates: tuple[str, str] | None = None,
    prompts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The template's variables. pairs: of `scored_pairs`; votes, scores: all of the run's.

    accepted: gate -> findings that are published all the same; settings: of the publishing itself; from_issues: the
    pairs are of GitHub issues; dates: the days when the first and the last of them were opened; prompts: the words of
    those that are known, by hash.
    """
    stages = in_order(entries)
    counted_votes = _votes(votes)
    repositories = [row for row in _groups(pairs, ["repository", "licence"]) if row[0] != "-"]
    return {
        "configs": [(layout.name, split, rows) for layout in published for split, rows in layout.counts.items()],
        "names": [layout.name for layout in published],
        "counted": [
            (stage.stage, name, key, rows)
            for stage in stages
            for name, counter in sorted(stage.tally.counts.items())
            for key, rows in sorted(counter.items())
        ],
        "dropped": [
            (stage.stage, reason, rows) for stage in stages for reason, rows in sorted(stage.tally.dropped.items())
        ],
        "stages": [_stage(stage, entries) for stage in stages],
        "origins": _groups(pairs, ["origin", "tier"]),
        "score_from": _groups(pairs, ["split", "score_from"]),
        "row_licences": [row for row in _groups(pairs, ["licence"]) if row[0] != "-"],
        "repositories": len({row[0] for row in repositories}),
        "repository_rows": _most(repositories),
        "dates": dates,
        "pairing": _pairing(entries),
        "mined": any("triplets" in entry.outputs and _mined(entry) for entry in stages),
        "calibrations": [entry.key["settings"]["calibration"] for entry in stages if _calibrated(entry)],
        "lengths": lengths(pairs),
        "bias": size_bias(pairs),
        "votes": counted_votes,
        "prompts": _prompts({row[3] for row in counted_votes}, prompts),
        "cascade": _cascade(entries),
        "scores": _scores(scores),
        "method": _method(entries),
        "accepted": sorted(accepted.items()),
        "publish_command": _publish_command(settings, from_issues),
        "from_issues": from_issues,
        "rehydrated": None,  # counts, where the texts were fetched again
        "unscored": _rows(entries, "pairs") - pairs.num_rows,
    }


def _publish_command(settings: Mapping[str, Any], from_issues: bool) -> str:
    """The command that publishes the run again with these settings."""
    licences = settings["licences"]
    words = ["stscurate", "publish", "RUN", "--to", "FOLDER", "--title", " ".join(settings["title"].split())]
    words += ["--licence", licences[0]] if len(licences) == 1 else []  # several are those that the rows name
    words += [word for language in settings["languages"] for word in ("--language", language)]
    words += [word for gate in settings["accept"] for word in ("--accept", gate)]
    words += ["--texts"] if from_issues and settings["texts"] else []
    words += ["--croissant"] if settings.get("croissant") else []
    return shlex.join(words)


def in_order(entries: Mapping[str, Entry]) -> list[Entry]:
    """Stages in the order of the data (issues, links, texts, pairs, ...), whenever each was finished last."""
    tables = list(SCHEMAS)
    return sorted(entries.values(), key=lambda entry: (min(map(tables.index, entry.outputs)), entry.stage))


def _rows(entries: Mapping[str, Entry], table: str) -> int:
    """Rows of a table by the manifest; 0 where no stage made it."""
    return next((entry.outputs[table]["rows"] for entry in entries.values() if table in entry.outputs), 0)


def _stage(entry: Entry, entries: Mapping[str, Entry]) -> dict[str, Any]:
    return {
        "name": entry.stage,
        "command": _command(entry, {table for other in entries.values() for table in other.outputs}),
        "makes": ", ".join(entry.outputs),
        "seed": entry.key["seed"],
        "inputs": sorted(entry.key["inputs"].items()),
        "settings": json.dumps(entry.key["settings"], ensure_ascii=False, sort_keys=True, indent=1),
    }


def _command(entry: Entry, made: set[str]) -> str:
    if "votes" in entry.outputs or "imported" in entry.key["settings"]:
        return "stscurate annotate PAIRS --llm SPEC... --out RUN"
    if "scores" in entry.outputs:
        return "stscurate ensemble RUN"
    if "triplets" in entry.outputs:
        return f"stscurate {'mine PAIRS' if _mined(entry) else 'triplets TEXTS'} --out RUN"
    if "issues" in made:
        return "stscurate collect-issues --from FILE --out RUN"
    return "stscurate sample-pairs TEXTS --out RUN"


def _pairing(entries: Mapping[str, Entry]) -> dict[str, Any] | None:
    """Settings of the stage that paired issues, and of its texts those over each limit, (tokens, texts, share)."""
    for entry in entries.values():
        if "pairs" in entry.outputs and "lexical_share" in entry.key["settings"]:
            counts: Mapping[str, int] = entry.tally.counts.get("tokens", {})
            texts = counts.get("texts", 0)
            over = [
                (int(key.rpartition("_")[2]), rows, _percent(rows / texts))
                for key, rows in counts.items()
                if key != "texts"
            ]
            shares = {name: _percent(entry.key["settings"][name]) for name in ("lexical_share", "encoder_share")}
            return {**entry.key["settings"], **shares, "texts": texts, "over": sorted(over)}
    return None


def _mined(entry: Entry) -> bool:
    """Whether a stage of triplets found its negatives among other texts."""
    return bool(entry.key["settings"].get("by") == "mining")


def _calibrated(entry: Entry) -> bool:
    """Whether the stage took similarities as a calibration corrects them."""
    return isinstance(entry.key["settings"].get("calibration"), dict)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _groups(pairs: Parts, columns: list[str]) -> list[Row]:
    """(value, ..., rows) of each combination of values, sorted; null as "-"."""
    counts = _counted(pairs.batches(columns), columns)
    rows = [(*("-" if value is None else value for value in key), count) for key, count in counts.items()]
    return sorted(rows, key=lambda row: [str(value) for value in row])


def _counted(batches: Iterable[pa.RecordBatch], columns: list[str]) -> Counter[Row]:
    """Rows of each combination of values."""
    found: Counter[Row] = Counter()
    for batch in batches:
        groups = pa.Table.from_batches([batch]).group_by(columns).aggregate([([], "count_all")]).to_pylist()
        found.update({tuple(row[name] for name in columns): row["count_all"] for row in groups})
    return found


def _most(repositories: list[Row]) -> list[Row]:
    """(repository, licences, pairs), most pairs first; the last row is of all those that there is no room for."""
    rows = sorted(repositories, key=lambda row: (-row[2], row[0], row[1]))
    if len(rows) <= _MOST_REPOSITORIES:
        return rows
    rest = rows[_MOST_REPOSITORIES:]
    return [*rows[:_MOST_REPOSITORIES], (f"{counted(len(rest), 'other')}", "-", sum(row[2] for row in rest))]


def _method(entries: Mapping[str, Entry]) -> str:
    """How votes became scores, in a sentence or two; empty where nothing did."""
    for entry in entries.values():
        if "scores" in entry.outputs and "method" in entry.key["settings"]:
            settings = entry.key["settings"]
            gold = entry.tally.counts["gold"]["pairs"] if "gold" in entry.tally.counts else 0
            told = f"They were put together by the method `{settings['method']}`"
            if not gold:
                return f"{told}. No gold ratings were used, so that 0.5 isn't a human's 0.5: only the order is sure."
            return (
                f"{told}, and calibrated to gold ratings of {counted(gold, 'pair')} by a curve ({settings['curve']}), "
                f"fitted for each of {settings['folds']} parts to the gold in the others."
            )
    return ""


def _votes(votes: Iterable[pa.RecordBatch]) -> list[Row]:
    """(annotator, scoring, scale, prompt, votes, votes without a number)."""
    by = ["annotator", "scoring", "scale", "prompt"]
    counts = _counted((batch.append_column("failed", pc.is_null(batch["raw"])) for batch in votes), [*by, "failed"])
    keys = sorted({key[:-1] for key in counts})
    return [(*key, counts[*key, False] + counts[*key, True], counts[*key, True]) for key in keys]


def _prompts(hashes: set[str], known: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """(hash, its words) of the prompts that votes name and that are known; examples are counted, not shown."""
    found = []
    for name in sorted(hashes & (known or {}).keys()):
        parts = {part: words for part, words in (known or {})[name].items() if words and isinstance(words, str)}
        told = [f"{part}: {words.strip()}" for part, words in parts.items()]
        lists = ((part, values) for part, values in (known or {})[name].items() if values and isinstance(values, list))
        for part, values in lists:
            short = all(isinstance(value, str) for value in values)
            told.append(f"{part}: {', '.join(values) if short else len(values)}")
        found.append((name, "\n\n".join(told).replace("````", "` ` ` `")))
    return found


def _cascade(entries: Mapping[str, Entry]) -> list[Row]:
    """(annotator, pairs it was asked about, their share), where a cascade asked some about a part only."""
    for entry in entries.values():
        if "votes" in entry.outputs and "cascade" in entry.key["settings"]:
            asked: Mapping[str, int] = entry.tally.counts.get("pairs_asked_about", {})
            most = max(asked.values(), default=0)
            return [(name, pairs, _percent(pairs / most) if most else "-") for name, pairs in sorted(asked.items())]
    return []


def _scores(scores: Iterable[pa.RecordBatch]) -> list[Row]:
    """(method, pairs, pairs that two or more annotators scored, their mean agreement or "-")."""
    pairs: Counter[str] = Counter()
    several: Counter[str] = Counter()
    agreements: dict[str, list[float]] = {}  # sum and count
    for batch in scores:
        for row in batch.to_pylist():
            method = row["method"]
            pairs[method] += 1
            several[method] += row["annotators"] >= 2
            if row["agreement"] is not None:
                total = agreements.setdefault(method, [0.0, 0])
                total[0] += row["agreement"]
                total[1] += 1
    means = {method: total / count for method, (total, count) in agreements.items()}
    return sorted((method, count, several[method], means.get(method, "-")) for method, count in pairs.items())
