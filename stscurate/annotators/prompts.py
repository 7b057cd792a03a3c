"""The questions that models are asked: the words of a task, from a file that is under version, and their hash."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from stscurate.annotators.guard import guarded
from stscurate.errors import InputError
from stscurate.resources import definition
from stscurate.services.answers import answer_key

Task = Literal["similarity", "duplicate", "relevance"]
Language = Literal["en", "zh"]
Message = dict[str, str]
_SCALE = re.compile(r"(\d+)\.\.(\d+)")
_WORDS = {"system", "user", "scale"}


@dataclass(frozen=True)
class Example:
    """A pair and how it is to be answered."""

    text1: str
    text2: str
    answer: str


@dataclass(frozen=True)
class Prompt:
    """What is asked about two texts, as in datasets/prompts/similarity.toml.

    scale: "0..5", the whole numbers that may be answered; or "0..1" with the words `yes` (1) and `no` (0), the first
    of each being the one that examples are answered with. fenced: texts are put in by `guard.guarded`; without it (a
    benchmark's matter, no file can say so) as they stand.
    """

    system: str
    user: str
    scale: str
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    fenced: bool = True

    @classmethod
    def load(cls, task: Task = "similarity", *, language: Language = "en", shots: int = 0) -> "Prompt":
        """The package's own words for a task. shots: of the file's examples, the first so many are shown."""
        if task not in get_args(Task) or language not in get_args(Language):
            raise InputError(f"There is no prompt for the task {task} in the language {language}.")
        suffix = "" if language == "en" else f".{language}"
        return cls.read(definition(f"prompts/{task}{suffix}.toml"), shots=shots)

    @classmethod
    def read(cls, path: Path, *, shots: int = 0) -> "Prompt":
        """A prompt of a file of that form. InputError says what is wrong with it."""
        if not path.is_file():
            raise InputError(
                f"--prompt {path} isn't a file: give a TOML file such as datasets/prompts/similarity.toml."
            )
        try:
            return cls._of(tomllib.loads(path.read_text("utf-8")), shots)
        except (ValueError, TypeError, KeyError) as error:  # of TOML, of UTF-8, of _of
            raise InputError(
                f"{path} isn't a prompt ({error}): mend it after datasets/prompts/similarity.toml."
            ) from None

    @classmethod
    def _of(cls, found: dict[str, Any], shots: int) -> "Prompt":
        examples = tuple(Example(*map(str, example)) for example in found.pop("examples", []))
        unknown = found.keys() - _WORDS - {"yes", "no"}
        if unknown or not found.keys() >= _WORDS:
            raise ValueError(
                f"it needs {', '.join(sorted(_WORDS))}, takes yes, no and examples, and has {sorted(found)}"
            )
        if any(found["user"].count(place) != 1 for place in ("{text1}", "{text2}")):
            raise ValueError("user holds {text1} and {text2}, each once")
        yes, no = (tuple(map(str, found.get(name, ()))) for name in ("yes", "no"))
        prompt = cls(found["system"], found["user"], found["scale"], yes, no)
        ends = _SCALE.fullmatch(prompt.scale)
        if not ends or not int(ends[1]) < int(ends[2]) <= 10 or bool(prompt.yes) != bool(prompt.no):
            raise ValueError("scale runs from one whole number to a higher one, 10 at most, or has words yes and no")
        if prompt.yes and prompt.scale != "0..1":
            raise ValueError('with words yes and no the scale is "0..1"')
        if len(examples) < shots:
            raise InputError(f"--shots {shots}: the prompt has {len(examples)} examples; ask for no more.")
        wrong = [example.answer for example in examples if example.answer not in prompt.values]
        if wrong:
            raise ValueError(f"an example is answered {wrong[0]}, which isn't on the scale")
        return replace(prompt, examples=examples[:shots])

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that change with any word."""
        return answer_key(**asdict(self))[:16]

    @property
    def values(self) -> dict[str, float]:
        """What may be answered, and the number it stands for; words in lower case."""
        if self.yes:
            return {word.casefold(): 1.0 for word in self.yes} | {word.casefold(): 0.0 for word in self.no}
        return {str(number): float(number) for number in range(self.low, self.high + 1)}

    @property
    def low(self) -> int:
        """The scale's lower end."""
        return int(self.scale.split("..")[0])

    @property
    def high(self) -> int:
        """The scale's upper end."""
        return int(self.scale.split("..")[1])

    def answer(self, score: float) -> str:
        """How a gold score of 0 to 1 is answered on this scale."""
        if self.yes:
            return self.yes[0] if score >= 0.5 else self.no[0]
        return str(round(self.low + score * (self.high - self.low)))

    def messages(self, text1: str, text2: str, examples: Sequence[Example] | None = None) -> list[Message]:
        """The question about two texts, behind the examples (by default the prompt's own) as answered turns."""
        shown = self.examples if examples is None else examples
        turns = [{"role": "system", "content": self.system.strip()}]
        for example in shown:
            turns.append({"role": "user", "content": self._asked(example.text1, example.text2)})
            turns.append({"role": "assistant", "content": example.answer})
        return [*turns, {"role": "user", "content": self._asked(text1, text2)}]

    def _asked(self, text1: str, text2: str) -> str:
        guard = guarded if self.fenced else str
        texts = {"{text1}": guard(text1), "{text2}": guard(text2)}
        return re.sub(
            r"\{text[12]\}", lambda found: texts[found[0]], self.user
        ).strip()  # one pass: a text may hold {text2}
