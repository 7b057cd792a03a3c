"""Why two issues are a pair or aren't, why an issue stands in none, and what became of a link: in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from stscurate.pairing.replay import Fate, Replay
from stscurate.wording import counted

_REASONS = {
    "duplicate_missing": "the duplicate isn't among the run's issues",
    "canonical_missing": "the original isn't among the run's issues",
    "root_of_a_cycle": "the chain of links leads back to the issue itself, which is the oldest of the cycle",
    "text_too_short": "a text has fewer than {min_chars} characters",
    "identical_texts": "the two texts are equal, so there is nothing to learn from them",
    "repeated_pair": "a link as sure or surer makes a pair of the same two texts",
    "component_in_two_splits": "its component stands in repositories of two splits",
}
_SHOWN = 20

Story = dict[str, Any]


def about_two(replay: Replay, names: Sequence[str], pair: Mapping[str, Any] | None) -> Story:
    """Component, and why two issues of the run are a pair or aren't."""
    one, other = sorted(replay.corpus.index[name] for name in names)
    way = replay.way(one, other)
    joined = [
        {"one": replay.corpus.ids[a], "other": replay.corpus.ids[b], "by": replay.joined_by(a, b)}
        for a, b in pairwise(way)
    ]
    component = {replay.corpus.ids[at]: replay.corpus.ids[replay.component[at]] for at in (one, other)}
    fates = [fate for fate in replay.fates if _concerns(fate, one, other)]
    return {
        "component": component,
        "joined": joined,
        "kept": pair is not None,
        "why": _kept(replay, pair, fates) if pair else _dropped(replay, one, other, fates, joined),
    }


def _kept(replay: Replay, pair: Mapping[str, Any], fates: Sequence[Fate]) -> str:
    if pair["label"] == 0:
        kind = pair["origin"].removeprefix("negative:")
        drawn = "drawn at random" if kind == "random" else f"drawn among the {kind} neighbours"
        return (
            f"a negative pair, {drawn} of the issues of {pair['repository']} in {pair['split']}: the two stand in "
            "different components, and neither refers to the other"
        )
    ids = replay.corpus.ids
    sides = {replay.corpus.index[pair[side].lower()] for side in ("id1", "id2")}
    fates = [fate for fate in fates if fate.pair and {fate.pair.duplicate, fate.pair.canonical} == sides]
    said = [
        f"{ids[fate.link.duplicate]} is said to duplicate {ids[fate.link.canonical]}"
        for fate in fates
        if fate.reason is None
    ]
    carried = any(fate.pair and fate.link.canonical != fate.pair.canonical for fate in fates)
    if not said:
        return f"a positive pair of tier {pair['tier']}: links join the two, by way of others"
    return f"a positive pair: {'; '.join(said)}" + (", which leads on to the root of its chain" if carried else "")


def _dropped(replay: Replay, one: int, other: int, fates: Sequence[Fate], joined: Sequence[Any]) -> str:
    """Why two issues make no pair: what became of their links, else which rule keeps them from being a negative one."""
    if fates:
        return "; ".join(dict.fromkeys(_reason(replay, fate) for fate in fates))
    corpus = replay.corpus
    splits = [replay.split.get(replay.component[at]) for at in (one, other)]
    if joined:
        return (
            "no link makes them duplicates, but they stand in one component, so that they are no negative pair either"
        )
    short = [corpus.ids[at] for at in (one, other) if not replay.usable[at]]
    if short:
        return f"no link joins them, and {' and '.join(short)} has fewer than {replay.settings['min_chars']} characters"
    if corpus.refer_to_each_other(one, other):
        return "no link joins them, but one refers to the other, so that they are no negative pair either"
    if corpus.repositories[one] != corpus.repositories[other]:
        return "no link joins them, and negative pairs are drawn within a repository"
    if splits[0] != splits[1] or splits[0] is None:
        return f"no link joins them, and they stand in different splits ({splits[0]}, {splits[1]})"
    return _not_drawn(replay, one, "the two could have been a negative pair, but weren't drawn")


def _not_drawn(replay: Replay, at: int, what: str) -> str:
    repository, split = replay.corpus.repositories[at], replay.split[replay.component[at]]
    positives = replay.positives_in(repository, split)
    ceiling = replay.settings.get("ceiling")
    of = "similarity" if "calibration" in replay.settings else "cosine"
    near = "" if ceiling is None else f" (or the encoder's {of} reaches {ceiling}, which isn't computed here)"
    return (
        f"no link joins them: {what}{near}. For the {positives} positive pairs of {repository} in {split}, "
        f"{replay.settings['negatives']:g} negative ones each were wanted"
    )


def about_one(replay: Replay, name: str, rows: Sequence[Mapping[str, Any]]) -> Story:
    """The pairs that an issue stands in, what its component is joined by, and why it is in none."""
    at = replay.corpus.index[name]
    members = [member for member, of in enumerate(replay.component) if of == replay.component[at]]
    joined = [
        {"one": replay.corpus.ids[at], "other": replay.corpus.ids[other], "by": replay.joined_by(at, other)}
        for other in sorted(replay.neighbours[at])[:_SHOWN]
    ]
    pairs = [{key: pair[key] for key in ("pair_id", "id1", "id2", "label", "split", "origin", "tier")} for pair in rows]
    found = Counter("positive" if pair["label"] else "negative" for pair in pairs)
    why = f"it stands in {found['positive']:,} positive and {counted(found['negative'], 'negative pair')}"
    if not pairs:
        own = [fate for fate in replay.fates if fate.link.duplicate == at or fate.link.canonical == at]
        split = replay.split.get(replay.component[at])
        if not replay.usable[at]:
            why = f"its text has fewer than {replay.settings['min_chars']} characters"
        elif own:
            why = "none of its links makes a pair (see there), and no negative pair was drawn with it"
        elif split is None:
            why = "no link names it, and its component stands in no split"
        else:
            why = _not_drawn(replay, at, "it could have stood in negative pairs, but wasn't drawn")
    return {
        "component": {replay.corpus.ids[at]: replay.corpus.ids[replay.component[at]]},
        "component_size": len(members),
        "joined": joined,
        "pairs": pairs[:_SHOWN],
        "kept": bool(pairs),
        "why": why,
    }


def _reason(replay: Replay, fate: Fate) -> str:
    """What became of a link, in words."""
    ids = replay.corpus.ids
    link = f"{ids[fate.link.duplicate]} -> {ids[fate.link.canonical]}"
    carried = fate.pair and fate.pair.canonical != fate.link.canonical
    onward = f", carried on to {ids[fate.pair.canonical]}" if fate.pair and carried else ""
    if fate.reason is None and fate.pair:
        return f"{link}{onward}: makes a pair"
    return f"{link}{onward}: {_REASONS[fate.reason or ''].format(**replay.settings)}"


def about_link(replay: Replay, row: int, link: Mapping[str, Any]) -> Story:
    """A link as it stands in the table, and its fate."""
    names = [f"{link[a]}#{link[b]}" for a, b in (("repository", "duplicate"), ("canonical_repository", "canonical"))]
    sides = [replay.corpus.index.get(name.lower()) for name in names]
    fate = next((fate for fate in replay.fates if [fate.link.duplicate, fate.link.canonical] == sides), None)
    return {
        "duplicate": names[0],
        "canonical": names[1],
        **{name: link[name] for name in ("tier", "evidence", "author_association", "at")},
        "reason": fate.reason if fate else replay.why_unknown(row),
        "fate": _reason(replay, fate) if fate else f"{names[0]} -> {names[1]}: {_REASONS[replay.why_unknown(row)]}",
    }


def _concerns(fate: Fate, one: int, other: int) -> bool:
    """Whether a link names the two issues, or was carried on to them."""
    pairs = [fate.link, *([fate.pair] if fate.pair else [])]
    return any({pair.duplicate, pair.canonical} == {one, other} for pair in pairs)
