"""A row's story (pairing/tracing.py) as lines for a person."""

from collections.abc import Iterator, Mapping
from typing import Any

from stscurate.wording import counted

_WIDE = 100


def lines_of(story: Mapping[str, Any]) -> Iterator[str]:
    """One screen, as a rule."""
    yield f"{story['row']}: {'kept' if story['kept'] else 'no pair'}"
    yield f"    why: {story['why']}"
    for issue in story.get("issues", []):
        yield from _issue(issue)
    for number, text in enumerate(story.get("texts", []), 1):
        yield f"text{number}: {counted(text['chars'], 'character')}: {_short(text['begins'])}"
    if story.get("links"):
        yield "links:"
    for link in story.get("links", []):
        who = link["author_association"] or "unknown"
        yield f"    {link['fate']} (tier {link['tier']}, {link['evidence']}, {_day(link['at'])}, by {who})"
    yield from _component(story)
    for pair in story.get("pairs", []):
        what = f"{'positive' if pair['label'] else 'negative'}, {pair['split']}, {pair['origin']}"
        yield f"pair {pair['pair_id']}: {pair['id1']} {pair['id2']} ({what})"
    if story.get("pair"):
        yield from _pair(story["pair"])
    yield from _votes(story)
    for found in story.get("published", []):
        place = f"row {found['row']} of {found['split']}" if found["split"] else "not in it"
        other = "" if found["of_these_pairs"] else " (made of other pairs than the run has now)"
        yield f"published in {found['folder']}: {place}{other}"


def _issue(issue: Mapping[str, Any]) -> Iterator[str]:
    state = issue["state"] + (f" as {issue['state_reason']}" if issue["state_reason"] else "")
    labels = f"; labels {', '.join(issue['labels'])}" if issue["labels"] else ""
    yield f"{issue['id']}: {_short(issue['title'])}"
    when = f"{_day(issue['created_at'])} to {_day(issue['closed_at'])}"
    yield f"    {issue['url'] or 'no address'}; {state}, {when}{labels}"
    done = issue["cleaning"]
    changed = f"{done['taken_out_or_rewritten']} of {counted(done['lines'], 'line')} taken out or rewritten"
    yield f"    {counted(issue['raw_chars'], 'character')} raw, {issue['clean_chars']:,} cleaned: {changed}"
    for name, mark in (("first_out", "-"), ("first_new", "+")):
        yield from (f"        {mark} {line}" for line in done[name])


def _component(story: Mapping[str, Any]) -> Iterator[str]:
    component = story.get("component", {})
    if len(set(component.values())) == 1:
        size = f", {counted(story['component_size'], 'issue')}" if "component_size" in story else ""
        yield f"component {next(iter(component.values()))}{size}"
    elif component:
        yield "components: " + ", ".join(f"{name} in that of {root}" for name, root in component.items())
    for edge in story.get("joined", []):
        yield f"    {edge['one']} and {edge['other']}: {edge['by']}"


def _pair(pair: Mapping[str, Any]) -> Iterator[str]:
    names = ("label", "score", "split", "origin", "tier", "weight", "licence", "tokens1", "tokens2")
    told = ", ".join(f"{name} {pair[name]}" for name in names if pair[name] is not None)
    yield f"pair {pair['pair_id']}: {told}; flags {', '.join(pair['flags']) or 'none'}"


def _votes(story: Mapping[str, Any]) -> Iterator[str]:
    if story.get("votes"):
        yield "votes:"
    for vote in story.get("votes", []):
        raw = f"{vote['raw']:.4g} of {vote['scale']}" if vote["raw"] is not None else f"none ({vote['error']})"
        more = [f"{name} {vote[name]:.3g}" for name in ("entropy", "missing_mass") if vote[name] is not None]
        more += [f"{counted(vote['cut'], 'token')} cut"] if vote["cut"] else []
        where = f"{vote['scoring']}, {vote['order']}, sample {vote['sample']}"
        yield f"    {vote['annotator']} ({where}): {', '.join([raw, *more])}"
    score = story.get("score")
    if score:
        spread = "" if score["spread"] is None else f", spread {score['spread']:.3f}"
        yield f"score {score['score']:.3f} by {score['method']} of {counted(score['annotators'], 'annotator')}{spread}"


def _day(time: Any) -> str:
    return "-" if time is None else str(time)[:10]


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _WIDE else f"{plain[:_WIDE]} ..."
