"""What is trained on: one source of rows or several, each with its loss, and how several read as one."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from torch import nn

from stscurate.errors import InputError
from stscurate.records import Tally
from stscurate.training.batches import Batches, Turns
from stscurate.training.data import TrainingRows
from stscurate.training.row_losses import Ended, Floats, Terms
from stscurate.training.schedule import Schedule


@dataclass(frozen=True)
class Objective:
    """A loss, and what it asks of the batches.

    together: it has one vector of a text in a step. apart: two rows of one first text must not meet in a batch.
    rule: the losses of single rows at the end, and their terms.
    """

    name: str
    loss: Callable[[nn.Module], nn.Module]
    settings: dict[str, Any]
    together: bool
    apart: bool
    rule: Callable[[Ended], tuple[Floats, Terms]]


@dataclass(frozen=True)
class Part:
    """A source of rows, and the loss that it is trained by."""

    rows: TrainingRows
    objective: Objective


class Mix:
    """The parts of a training. No batch mixes them: scores of two sources needn't be comparable.

    turns: each part's share of the steps; None: as many steps as its rows fill, so that a pass holds every row once.
    InputError where turns aren't one number above 0 for each part.
    """

    def __init__(self, parts: Sequence[Part], turns: Sequence[float] | None = None):
        if turns is not None and (len(turns) != len(parts) or not all(0 < turn < float("inf") for turn in turns)):
            shown = ",".join(f"{turn:g}" for turn in turns)
            raise InputError(
                f"--turns {shown}: give {len(parts)} numbers above 0, one for each source, in the order of --data and "
                "--also."
            )
        self.parts = list(parts)
        self.turns = turns
        self.names = _unique([part.rows.name for part in parts])

    @property
    def several(self) -> bool:
        """Whether there is more than one part."""
        return len(self.parts) > 1

    @cached_property
    def rows(self) -> TrainingRows:
        """All rows as one; of several parts with its name before each id, and None in columns that a part lacks."""
        if not self.several:
            return self.parts[0].rows
        names = dict.fromkeys(name for part in self.parts for name in part.rows.columns)
        columns = {
            name: list(chain.from_iterable(part.rows.columns.get(name, [None] * len(part.rows)) for part in self.parts))
            for name in names
        }
        ids = [f"{name} {key}" for name, part in zip(self.names, self.parts, strict=True) for key in part.rows.ids]
        tally = Tally()
        for part in self.parts:
            tally.add(part.rows.tally)
        return TrainingRows(ids, columns, self._inputs, {}, tally)

    @property
    def methods(self) -> list[str]:
        """The losses' names, each once."""
        return list(dict.fromkeys(part.objective.name for part in self.parts))

    @property
    def settings(self) -> dict[str, Any]:
        """What shapes the result."""
        own = [{**part.rows.settings, **part.objective.settings} for part in self.parts]
        if not self.several:
            return own[0]
        named = [
            {"source": name, "loss": part.objective.name, **settings}
            for name, part, settings in zip(self.names, self.parts, own, strict=True)
        ]
        return {"sources": named} | ({"turns": list(self.turns)} if self.turns else {})

    def sources(self) -> list[int]:
        """Of each row the place of its part."""
        return [place for place, part in enumerate(self.parts) for _ in part.rows.ids]

    def batches(self, lengths: Sequence[int], schedule: Schedule, *, processes: int = 1) -> Batches | Turns:
        """The batches of a pass. lengths: tokens of each row, (n,)."""
        every, first = [], 0
        for place, part in enumerate(self.parts):
            keys = part.rows.columns[part.rows.text_columns[0]] if part.objective.apart else None
            every.append(
                Batches(
                    lengths[first : first + len(part.rows)],
                    schedule.batch_size,
                    seed=(schedule.seed, place + 1) if self.several else schedule.seed,
                    order=schedule.batches,
                    apart=keys,
                    processes=processes,
                )
            )
            first += len(part.rows)
        return Turns(every, seed=schedule.seed, shares=self.turns, processes=processes) if self.several else every[0]

    def count(self, tally: Tally, schedule: Schedule) -> int:
        """Note of each of several parts what became of its rows; give the rows that no batch holds."""
        if not self.several:
            return 0
        batches = self.batches([1] * len(self.rows), schedule)
        reached: set[int] = set()
        for epoch in range(schedule.epochs if self.turns else 0):
            batches.set_epoch(epoch)
            reached.update(row for batch in batches for row in batch)
        source = self.sources()
        seen = Counter(source[row] for row in reached)
        total = 0
        for place, (name, part) in enumerate(zip(self.names, self.parts, strict=True)):
            used = seen[place] if self.turns else len(part.rows)
            tally.count(f"rows of {name}", "used", used)
            for reason, rows in sorted(part.rows.tally.dropped.items()):
                tally.count(f"rows of {name}", reason, rows)
            if used < len(part.rows):
                tally.count(f"rows of {name}", "not_reached", len(part.rows) - used)
            total += len(part.rows) - used
        tally.drop("not_reached", total)
        return total

    @property
    def _inputs(self) -> dict[str, str]:
        return {
            name if key == name else f"{name}: {key}": digest
            for name, part in zip(self.names, self.parts, strict=True)
            for key, digest in part.rows.inputs.items()
        }


def _unique(names: Sequence[str]) -> list[str]:
    """The names, the second of a kind with -2 behind it."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found
