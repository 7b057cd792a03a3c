"""What asks cost: prices by model, and a purse that asks are paid from until it is empty."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stscurate.errors import InputError
from stscurate.services.chat import Reply

_MILLION = 1e6
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")  # gpt-4o-mini-2024-07-18


@dataclass(frozen=True)
class Price:
    """Of one model, for a million tokens, in the money of the table; limits a minute where they are known.

    batch: what of it is to be paid for asks in batches.
    """

    input: float
    output: float
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    batch: float = 1.0

    @property
    def in_batches(self) -> "Price":
        """The price of asks in batches, which no limit a minute holds for."""
        return Price(self.input * self.batch, self.output * self.batch)

    def of(self, prompt: float, answer: float) -> float:
        """What so many tokens cost."""
        return (prompt * self.input + answer * self.output) / _MILLION


class Prices:
    """A table of prices, as datasets/prices.toml."""

    def __init__(self, models: dict[str, Price], name: str):
        self._models = models
        self.name = name

    @classmethod
    def load(cls, path: Path) -> "Prices":
        """InputError where it isn't such a table."""
        try:
            found = tomllib.loads(path.read_text("utf-8"))["models"]
            models = {model: _price(values) for model, values in found.items()}
        except OSError as error:
            raise InputError(f"{path} can't be read ({error.strerror}): name a file of prices.") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f'{path} is no table of prices ({error}): write [models."NAME"] with input and output, '
                "in US dollars per million tokens."
            ) from None
        return cls(models, path.name)

    def get(self, model: str) -> Price | None:
        """The price of a model, also of one with a date behind its name; None where none is known."""
        return self._models.get(model) or self._models.get(_DATED.sub("", model))


@dataclass(frozen=True)
class Bill:
    """What one request in flight is guessed to cost."""

    tokens: float  # of ask and answer
    guess: float
    held: float
    price: Price | None


class Purse:
    """What may be sent and spent, and what was. All requests count as sent; those that fail cost nothing.

    requests, cost: caps; None for no end. `full` is set where a cap ended the work.
    """

    def __init__(self, *, requests: int | None = None, cost: float | None = None):
        self.full = False
        self.sent = 0
        self.spent = 0.0
        self.in_flight = 0
        self._requests = requests
        self._cost = cost
        self.capped_cost = cost is not None
        self._held = 0.0  # what those in flight may cost
        self._ratio = 1.0  # of real tokens to guessed ones, at most

    def reserve(self, tokens: float, answer: float, price: Price | None) -> Bill | None:
        """Take a request's guessed cost, if it fits under the caps."""
        guess = price.of(tokens, answer) if price else 0.0
        held = guess * self._ratio
        if self._requests is not None and self.sent >= self._requests:
            return None
        if self._cost is not None and self.spent + self._held + held > self._cost:
            return None
        self.sent += 1
        self.in_flight += 1
        self._held += held
        return Bill(tokens + answer, guess, held, price)

    def settle(self, bill: Bill, reply: Reply | None, *, sent: bool) -> None:
        """Put the real cost in place of the guess, which stands where no usage is told, or no reply came in time."""
        self.in_flight -= 1
        self._held -= bill.held
        if not bill.price or (reply.error if reply else not sent):
            return
        if reply is None or reply.usage is None:
            self.spent += bill.guess
            return
        asked = reply.usage if reply.prompt_tokens is None else reply.prompt_tokens
        self.spent += bill.price.of(asked, reply.usage - asked)
        self._ratio = max(self._ratio, reply.usage / max(bill.tokens, 1.0))


def _price(values: dict[str, Any]) -> Price:
    price = Price(**{name: float(value) for name, value in values.items()})
    if min(price.input, price.output, price.batch) < 0:
        raise ValueError("a price is below 0")
    return price
