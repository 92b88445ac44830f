"""The task of a planner: options, inputs, target and machine of a job, and the reasons of its plan so far.

Design: docs/design/front.md.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.planning.choices import Choices
from tilewise.planning.need import SHARE, Need, with_unpacking
from tilewise.planning.where import Spread

Options = TypeVar("Options", bound=Choices)


class Task(msgspec.Struct, Generic[Options]):
    """A job to be planned.

    `target` is None where nothing is written, or where it is a folder of several files; `joined` tells of
    ranks that exist already. `why` gets a reason for each choice that was left open.
    """

    options: Options
    inputs: list[Region]
    target: Target | None
    facts: Facts
    joined: Join | None = None
    why: list[str] = []

    @property
    def source(self) -> Region:
        """The first input."""
        return self.inputs[0]

    @property
    def output(self) -> Target:
        """The target of a job that writes a matrix."""
        assert self.target is not None
        return self.target

    @property
    def room(self) -> int:
        """Bytes that the ranks of a node may take: --memory, or a share of what is available."""
        cap = self.options.memory
        return cap if cap is not None else int(self.facts.memory_available * SHARE)

    @property
    def limit(self) -> int | None:
        """As `room`; None where there is no --memory and nobody knows how much is available."""
        return self.room if self.options.memory is not None or self.facts.memory_known else None

    def asking(self, **options: object) -> Task[Options]:
        """Copy of the task with other `options`, and no reasons yet."""
        asked = msgspec.structs.replace(self.options, **options)
        return Task(asked, self.inputs, self.target, self.facts, self.joined)

    def taken(self, need: Need, variant: Variant, spread: Spread) -> int:
        """Bytes of `need`, with unpacking, that count against a limit.

        Those of a node; of a rank where it is not sure which ranks share a node.
        """
        need = with_unpacking(need, self.inputs, variant, spread.on_node)
        return need.node if spread.sure else need.rank
