"""What `annotate` can be told of how its annotators are asked, and the options of `stscurate.annotators` it makes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import typer

if TYPE_CHECKING:
    from stscurate.annotators import Options
    from stscurate.methods.known_relevance import Relevance
    from stscurate.services.engine import Engine

Task = Annotated[
    Literal["similarity", "duplicate", "relevance"],
    typer.Option(
        "--task",
        help="What is asked: how similar (0 to 5), the same underlying issue (yes or no), how relevant (1 to 10).",
    ),
]
Language = Annotated[Literal["en", "zh"], typer.Option("--language", help="Language that it is asked in.")]
PromptFile = Annotated[
    Path | None, typer.Option("--prompt", help="TOML file of your own words, instead of --task and --language.")
]
Shots = Annotated[
    int,
    typer.Option("--shots", help="Answered examples shown: the prompt's first, or the nearest of --examples.", min=0),
]
Examples = Annotated[
    Path | None,
    typer.Option("--examples", help="File or run of pairs with gold, whose nearest pairs (3, or --shots) are shown."),
]
ExamplesScale = Annotated[
    str | None, typer.Option("--examples-scale", help="Range of their scores, as in 0-5; 0-1 by default.")
]
Samples = Annotated[
    int,
    typer.Option(
        "--samples", help="Asks a pair of chat models that give no log-probabilities; the mean counts.", min=1
    ),
]
JsonSchema = Annotated[
    bool, typer.Option("--json-schema", help="Ask chat models for JSON by a schema, and take nothing else.")
]
Scoring = Annotated[
    Literal["gain", "digits"],
    typer.Option(
        "--scoring",
        help="How local models are read: by likelihood of a paraphrase, or by the digit that they answer; "
        "local:MODEL#digits says it for one.",
    ),
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run Python code that lies beside a local model; read it before.")
]
CascadeShare = Annotated[
    float | None,
    typer.Option(
        "--cascade",
        help="Ask the dear annotators only about this share of the pairs (0 to 1), those where the others disagree or "
        "doubt most; all by default.",
    ),
]
Dear = Annotated[
    list[str] | None,
    typer.Option(
        "--dear",
        metavar="NAME",
        help="Name of an annotator that --cascade asks less, repeatable; endpoints by default.",
    ),
]
RelevanceFolder = Annotated[
    Path | None,
    typer.Option(
        "--relevance", help="With --cascade: folder of `audit relevance`, whose even odds are worth a dear ask too."
    ),
]
_SHOTS = 3


class Which(TypedDict):
    """Who is asked about which pairs."""

    split: str | None
    cascade: float | None
    dear: list[str]
    relevance: "Relevance | None"
    accept_corpus: bool


def which(
    split: str | None, cascade: float | None, dear: list[str] | None, relevance: Path | None, accept: str | None
) -> Which:
    """These options, as `annotate` and `plan` take them. InputError where the folder holds no curve."""
    from stscurate.methods.known_relevance import Relevance

    return {
        "split": split,
        "cascade": cascade,
        "dear": dear or [],
        "relevance": Relevance.load(relevance) if relevance else None,
        "accept_corpus": accept == "corpus",
    }


def options(
    *,
    task: Literal["similarity", "duplicate", "relevance"],
    language: Literal["en", "zh"],
    prompt: Path | None,
    shots: int,
    examples: Path | None,
    examples_scale: str | None,
    max_tokens: int,
    both_orders: bool,
    samples: int,
    json_schema: bool,
    scoring: Literal["gain", "digits"],
    trust_remote_code: bool,
    engine: "Engine | None",
    seed: int,
) -> "Options":
    """The options of `annotate` and `plan`; InputError where a file among them can't be read."""
    from stscurate.annotators.examples import Nearest
    from stscurate.annotators.prompts import Prompt

    fixed = 0 if examples else shots
    asked = Prompt.read(prompt, shots=fixed) if prompt else Prompt.load(task, language=language, shots=fixed)
    nearest = None
    if examples:
        nearest = Nearest.read(examples, shots=shots or _SHOTS, scale=examples_scale, max_tokens=max_tokens)
    return {
        "prompt": asked,
        "nearest": nearest,
        "max_tokens": max_tokens,
        "both_orders": both_orders,
        "samples": samples,
        "json_schema": json_schema,
        "scoring": scoring,
        "language": language,
        "trust_remote_code": trust_remote_code,
        "engine": engine,
        "seed": seed,
    }
