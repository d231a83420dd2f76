"""Progress bars for commands that read or write many items or pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from shoal.cli import display
from shoal.core.plaintext import one_line
from shoal.export import Progress as Watch


@contextmanager
def bars(noun: str, total: int | None = None) -> Iterator[Watch]:
    """Show a bar for each stage of the work on a terminal. Without a total, it only counts."""
    console = display.console(stderr=True)
    columns = (TextColumn(f"{noun} {{task.description}}", markup=False), BarColumn(), _Count())
    quiet = not console.is_terminal
    with Progress(*columns, console=console, disable=quiet, transient=True) as live:
        stages: dict[str, TaskID] = {}

        def watch(stage: str, count: int) -> None:
            if stage not in stages:
                stages[stage] = live.add_task(one_line(stage), total=total)
            live.update(stages[stage], completed=count)

        yield watch


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal that something takes some seconds."""
    terminal = display.console(stderr=True)
    if not terminal.is_terminal:
        yield
        return
    with terminal.status(display.text(what)):
        yield


class _Count(ProgressColumn):
    def render(self, task: Task) -> Text:
        of_all = "" if task.total is None else f" of {task.total:,.0f}"
        return display.text(f"{task.completed:,.0f}{of_all}")
