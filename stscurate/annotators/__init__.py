"""Pairs -> votes of chat models behind an endpoint, language models, embedding models, cross-encoders and people."""

from collections.abc import Sequence
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from stscurate.annotators.asking import Limits, ask_chats
from stscurate.annotators.base import Annotator, Plan
from stscurate.annotators.cascade import cascade_of
from stscurate.annotators.chat import ChatAnnotator
from stscurate.annotators.specs import FORMS, Options, Spec, build, check_key, parse_spec, parse_specs
from stscurate.annotators.work import Pairs, Work, write
from stscurate.errors import InputError, StscurateError
from stscurate.manifest import Entry
from stscurate.methods.known_relevance import Relevance
from stscurate.progress import Progress, silent
from stscurate.services.answers import Answers
from stscurate.services.purse import Prices, Purse
from stscurate.store import Run

__all__ = ["FORMS", "Options", "Prices", "Purse", "Spec", "annotate", "check_annotators", "parse_spec", "plan"]

_FOR_GOOD = ": not_finite"  # a failure that asking again doesn't mend


def annotate(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    cascade: float | None = None,
    dear: Sequence[str] = (),
    relevance: Relevance | None = None,
    accept_corpus: bool = False,
    batch: bool = False,
    concurrency: int = 8,
    timeout: float = 60.0,
    prices: Prices | None = None,
    purse: Purse | None = None,
    progress: Progress = silent,
    **options: Unpack[Options],
) -> Entry:
    """Have each annotator of `specs` (see FORMS) vote on every pair of the run: stage and table "votes".

    split: only pairs of that split. cascade: the share of the pairs, 0..1, that the dear annotators (`dear`, by name;
    endpoints by default) are asked about, when the others have voted on all: see cascade.py. relevance: a curve that
    has a say in which; accept_corpus: also of another corpus, see Calibration.hold_to. batch: endpoints are asked
    in batches, which take up to a day; the call waits, and another goes on waiting. concurrency: requests in flight at
    most, to each endpoint. timeout: seconds for one request. prices: of models; those of the package by default. purse:
    caps on requests and cost, and what was spent. options: see Options.

    Every answer is kept in the run's answers.sqlite when it arrives. What is a vote is never asked for again. What
    failed (refused, cut off, not to be read, too slow, HTTP 400, ...) stands in the table with its `error` and without
    `raw`, is counted under "failed", and is asked again by the next call, as is what a cap of the purse or Ctrl-C left
    out, which is counted under "not_asked". So a call may end with part of the votes; the same call goes on. In a
    cascade the dear wait until no cheap vote is left out; "pairs_asked_about" counts the pairs of each annotator.

    InputError for an unknown form, two annotators of one name, a missing key or an unknown model, or a cost to be
    capped without a known price. ServiceError where an endpoint can't be asked to the end: what it answered is kept,
    and stands in the table. KeyboardInterrupt is raised after what is answered stands in the table.
    """
    if concurrency < 1:
        raise InputError("--concurrency is 1 at least.")
    parsed = parse_specs(specs)
    parts = cascade_of(parsed, cascade, dear, relevance)
    annotators = [build(spec, timeout=timeout, prices=prices, batch=batch, **options) for spec in parsed]
    inputs = {"pairs": run.fingerprint("pairs")}
    for annotator in annotators:
        inputs |= annotator.inputs
    settings: dict[str, Any] = {"annotators": [annotator.settings for annotator in annotators], "split": split}
    settings |= {"cascade": parts.settings} if parts else {}
    inputs |= parts.inputs if parts else {}
    standing = run.entries.get("votes")
    seed = options.get("seed", 0)
    stage = run.stage("votes", tables=["votes"], inputs=inputs, settings=settings, seed=seed, again=_lacks_votes)
    if stage.entry:
        return stage.entry
    check_key(parsed)
    run.keep_prompts({key: words for one in annotators for key, words in one.prompts.items()})
    pairs, left_out = _pairs(run, split)
    purse = purse or Purse()
    with Answers(run.folder / "answers.sqlite") as answers:
        unsure = parts.open_question(pairs, answers, progress, accept_corpus=accept_corpus) if parts else None
        work = Work(pairs, left_out, answers, parts, unsure=unsure)
        cheap = [one for one in annotators if work.can_ask(one)]
        limits = Limits(concurrency, purse, batch)
        try:
            ask_chats(_chats(cheap), work.pairs, answers, limits, progress)
            work = work.choose(cheap, progress, seed=seed)
            able = [one for one in annotators if work.can_ask(one)]
            late = _chats([one for one in able if work.dear(one)])
            if late:
                ask_chats(late, work.of(late[0]), answers, limits, progress)
            write(stage, able, [one for one in annotators if one not in able], work, progress)
        except (KeyboardInterrupt, StscurateError):
            chats = _chats([one for one in annotators if work.can_ask(one)])
            others = [one for one in annotators if one not in chats]
            # A finished table of other settings isn't given up for a part of this one.
            if not (standing and standing.key != stage.key) and write(stage, chats, others, work, silent):
                stage.commit()
            raise
        finally:
            if purse.sent:
                run.note(stage="votes", requests=purse.sent, cost=round(purse.spent, 6))
    return stage.commit()


def check_annotators(
    specs: Sequence[str],
    *,
    cascade: float | None = None,
    dear: Sequence[str] = (),
    relevance: Relevance | None = None,
    asked: bool = True,
    **options: Unpack[Options],
) -> None:
    """InputError where `annotate` would refuse these annotators, so that nothing is written for nothing.

    asked: whether requests are to be sent, which OpenAI takes with a key alone.
    """
    parsed = parse_specs(specs)
    for spec in parsed:
        build(spec, **options)
    cascade_of(parsed, cascade, dear, relevance)
    if asked:
        check_key(parsed)


def plan(
    run: Run,
    specs: Sequence[str],
    *,
    split: str | None = None,
    cascade: float | None = None,
    dear: Sequence[str] = (),
    relevance: Relevance | None = None,
    accept_corpus: bool = False,
    batch: bool = False,
    served: bool = False,
    prices: Prices | None = None,
    **options: Unpack[Options],
) -> list[Plan]:
    """What `annotate` with the same arguments would ask each annotator, and what is answered; nothing is sent.

    served: only of those that are sent requests. InputError where `annotate` would refuse the curve, too.
    """
    pairs, _ = _pairs(run, split)
    parsed = parse_specs(specs)
    parts = cascade_of(parsed, cascade, dear, relevance)
    if parts:
        parts.check_question(pairs, accept_corpus=accept_corpus)
    annotators = [build(spec, prices=prices, batch=batch, **options) for spec in parsed]
    told = [one for one in annotators if isinstance(one, ChatAnnotator) or not served]
    with Answers(run.folder / "answers.sqlite") as answers:
        plans = {one.name: one.plan(pairs, answers) for one in told}
    for one in told:
        if parts and one.name in parts.dear:
            plans[one.name] = parts.planned(plans[one.name], len(pairs) * one.per_pair)
    return list(plans.values())


def _chats(annotators: Sequence[Annotator]) -> list[ChatAnnotator]:
    return [annotator for annotator in annotators if isinstance(annotator, ChatAnnotator)]


def _pairs(run: Run, split: str | None) -> tuple[Pairs, int]:
    """The pairs to vote on, and how many are left out as of another split."""
    table: pa.Table = run.table("pairs")
    kept = table if split is None else table.filter(pc.fill_null(pc.equal(table["split"], split), False))
    if split is not None and not kept.num_rows:
        splits = ", ".join(sorted(str(value) for value in pc.unique(table["split"]).to_pylist() if value)) or "none"
        raise InputError(f"{run.folder} has no pairs of split {split}: it has {splits}.")
    return Pairs(kept), table.num_rows - kept.num_rows


def _lacks_votes(entry: Entry) -> bool:
    """Whether another call may bring votes that a finished table lacks."""
    counts = entry.tally.counts
    return "not_asked" in counts or any(not kind.endswith(_FOR_GOOD) for kind in counts.get("failed", ()))
