"""From a chat model's answer to a number: the expected value where probabilities are known, else what was answered.

At the place of the answer the probabilities of all that may be answered are renormalised and their values averaged, as
a model that wavers between 3 and 4 says more than the digit it settles on. `missing_mass` is the probability there
that is on nothing that may be answered; where it is above MOST_MISSING the model meant something else at that place,
and the vote is the number as it was written. `entropy` is that of the renormalised distribution, in nats.
"""

import json
import math
import re
from typing import Any

from stscurate.annotators.prompts import Prompt
from stscurate.services.chat import Reply, Token

MOST_MISSING = 0.5
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
_REFUSAL = re.compile(r"\b(?:sorry|unable|can'?t|can’t|cannot|can not|won'?t)\b|抱歉|对不起|无法", re.IGNORECASE)
_AROUND = " \t\r\n\"'`{}:*“”。，"  # what JSON, Markdown and Chinese put around an answer, in its token


def read_reply(reply: Reply, prompt: Prompt, *, schema: bool = False) -> dict[str, Any]:
    """What an answer says: `raw` (on the prompt's scale) with `entropy` and `missing_mass` where they are known, or
    `error`. schema: it is the JSON object that `answer_schema` describes, else it is no vote.
    """
    # A server may send half a surrogate pair, which no file can store.
    answer = (reply.refusal or reply.text).encode("utf-8", "replace").decode()
    number = parse_json(answer, prompt) if schema else parse_answer(answer, prompt)
    if reply.error or reply.refusal or number is None:
        return {"answer": answer, "error": reply.error or _why(reply)}
    return {"answer": answer, "raw": number} | _weighed(reply.logprobs or [], prompt.values, number)


def parse_answer(answer: str, prompt: Prompt) -> float | None:
    """The one number of an answer that is on the scale ("4", "Score: 3.5", "4/5"), or the value of the word that it
    begins with; None where there is none, or several.
    """
    if prompt.yes:
        return _word(answer, prompt.values)
    of_all = rf"(?<=\d)\s*(?:/|out of)\s*{prompt.high}(?:\.0)?(?!\w)"
    numbers = _NUMBER.findall(re.sub(of_all, "", answer))
    number = float(numbers[0]) if len(numbers) == 1 else math.nan
    return number if prompt.low <= number <= prompt.high else None


def parse_json(answer: str, prompt: Prompt) -> float | None:
    """The value of {"answer": ...}, where it is one that may be answered and the object holds nothing else."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"answer"} or isinstance(found["answer"], bool):
        return None
    return prompt.values.get(str(found["answer"]).casefold())


def answer_schema(prompt: Prompt) -> dict[str, Any]:
    """The `response_format` of a chat completion that lets through what may be answered and nothing else."""
    may: list[Any] = [prompt.yes[0], prompt.no[0]] if prompt.yes else list(range(prompt.low, prompt.high + 1))
    kind = "string" if prompt.yes else "integer"
    schema = {
        "type": "object",
        "properties": {"answer": {"type": kind, "enum": may}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "vote", "strict": True, "schema": schema}}


def _word(answer: str, values: dict[str, float]) -> float | None:
    said = answer.strip(_AROUND + ".,!").casefold()
    for word in sorted(values, key=len, reverse=True):  # "不是" before "不"
        if said.startswith(word) and not (word.isascii() and said[len(word) :][:1].isalnum()):
            rest = set(re.findall(r"\w+", said[len(word) :]))
            others = {other for other, value in values.items() if value != values[word]}
            return None if rest & others else values[word]  # "yes or no"
    return None


def _weighed(tokens: list[Token], values: dict[str, float], number: float) -> dict[str, float]:
    """`raw`, `entropy` and `missing_mass` at the answer's place; nothing where its probabilities aren't known."""
    for at, token in enumerate(tokens):
        text = token.text.strip(_AROUND).casefold()
        if text not in values:
            continue
        found = expected(token, values, tokens[at + 1] if at + 1 < len(tokens) else None)
        # A digit that goes on ("3.5", "10") isn't the number that was meant, unless the next token makes it one.
        after = tokens[at + 1].text.strip(_AROUND) if at + 1 < len(tokens) else ""
        if number not in (values[text], values.get(text + after)) or not found:
            return {}
        return found if found["missing_mass"] <= MOST_MISSING else found | {"raw": number}
    return {}


def expected(token: Token, values: dict[str, float], after: Token | None = None) -> dict[str, float]:
    """The expected value at a token's place (`raw`), its `entropy`, and the probability on nothing that counts.

    A "1" may be the first token of "10". Where it was the answer's token, the next token's probabilities part the two
    (after: that token); where another was, what it stands for isn't known, and its probability counts as missing,
    unless "10" is a token of its own there.

    >>> digits = {str(digit): float(digit) for digit in range(6)}
    >>> expected(Token("4", [("4", math.log(0.6)), ("3", math.log(0.2)), ("Four", math.log(0.2))]), digits)["raw"]
    3.75
    """
    mass: dict[str, float] = {}
    for text, logprob in token.top:
        word = text.strip(_AROUND).casefold()
        if word in values and logprob <= 0:
            mass[word] = mass.get(word, 0.0) + math.exp(logprob)
    for first in [word for word in mass if word + "0" in values and word + "0" not in mass]:
        if token.text.strip(_AROUND).casefold() != first:
            del mass[first]
        elif after is not None:
            goes_on = sum(math.exp(p) for text, p in after.top if text.strip(_AROUND) == "0" and p <= 0)
            mass[first + "0"] = mass[first] * min(goes_on, 1.0)
            mass[first] -= mass[first + "0"]
    total = sum(mass.values())
    if not total:
        return {}
    by_value: dict[float, float] = {}
    for word, share in mass.items():
        by_value[values[word]] = by_value.get(values[word], 0.0) + share / total
    return {
        "raw": sum(value * share for value, share in by_value.items()),
        "entropy": -sum(share * math.log(share) for share in by_value.values() if share),
        "missing_mass": max(0.0, 1 - total),
    }


def _why(reply: Reply) -> str:
    if reply.finish == "content_filter":
        return "content_filter"
    if reply.refusal or _REFUSAL.search(reply.text):
        return "refusal"
    return "length" if reply.finish == "length" else "parse"
