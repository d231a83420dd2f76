"""Makes the tables of docs/scale.md, in Markdown. A test compares them with that document."""

from __future__ import annotations

from benchmarks.billion import figures, needs
from benchmarks.billion.model import course_of
from benchmarks.billion.web import web_of
from benchmarks.report import markdown
from shoal.insight.figures import duration


def tables() -> dict[str, str]:
    """All tables by name."""
    return {
        "figures": _figures(),
        "workers": _workers(),
        "frontier": _frontier(),
        "fleet": _fleet(),
        "course": _course(),
        "order": _order(),
    }


def _figures() -> str:
    rows = [
        (figure.what, f"{figure.value:,.10g}", _command(figure.command))
        for figure in figures.FIGURES
    ]
    return markdown(("what", "figure", "by"), rows)


def _command(command: str) -> str:
    return command if command == figures.PUBLISHED else f"`{command}`"


def _workers() -> str:
    rows = [
        (need.page, f"{need.us / 1e3:.2f}", f"{need.cores:.0f}", f"{need.gbit_per_s:.1f}")
        for need in needs.worker_needs()
    ]
    return markdown(("page", "CPU ms", "cores", "Gbit/s"), rows)


def _frontier() -> str:
    rows = []
    for layout in needs.LAYOUTS:
        need = needs.frontier_need(layout)
        rows.append(
            (
                layout.name,
                *(f"{value:,.0f}" for value in (need.queued_gb, need.known_gb, need.memory_gb)),
                f"{need.disk_gb:,.0f}" if need.disk_gb else "",
                f"{need.shards} ({need.why})",
            )
        )
    heads = ("URLs", "queued GB", "known GB", "memory GB", "broker's disk GB", "servers (why)")
    return markdown(heads, rows)


def _fleet() -> str:
    worker = needs.worker_needs()[-1]
    rows = []
    for layout in needs.LAYOUTS:
        fleet = needs.fleet_need(worker, needs.frontier_need(layout))
        rows.append(
            (
                f"Shoal, {layout.name}",
                f"{fleet.cores:.0f}",
                f"{fleet.memory_gb:,.0f}",
                f"{fleet.disk_gb:,.0f}",
                f"{fleet.machines} ({fleet.why})",
                f"{fleet.dollars:,.0f}",
            )
        )
    theirs = figures.THEIR_MACHINES.value
    rows.append(
        (
            "the published crawl",
            f"{theirs * needs.MACHINE_CORES:.0f}",
            f"{theirs * needs.MACHINE_GB:,.0f}",
            f"{theirs * needs.MACHINE_DISK_GB:,.0f}",
            f"{theirs:.0f}",
            f"{figures.THEIR_DOLLARS.value:,.0f}",
        )
    )
    return markdown(("", "cores", "memory GB", "disk GB", "machines (why)", "$"), rows)


def _course() -> str:
    course = course_of(web_of(needs.PAGES, needs.PER_S))
    longest_gb = course.longest_queue * needs.EXACT.queued_bytes / 1e9
    rows = [
        ("it takes", duration(course.seconds)),
        ("pages per second", f"{course.per_s:,.0f}"),
        ("requests to a host, on average one in", duration(course.worst_wait_s)),
        ("URLs waiting for the largest host at the end", f"{course.longest_queue:,.0f}"),
        ("their queue, on Redis alone", f"{longest_gb:,.0f} GB"),
        ("pages of the largest host, at most", f"{course.seconds / web_of(1, 1).turn_s:,.0f}"),
    ]
    return markdown(("by the model", ""), rows)


def _order() -> str:
    rows = [(_rounded(each.pages), each.what, each.cure) for each in needs.breaks()]
    return markdown(("pages", "what fails", "remedy"), rows)


def _rounded(pages: float) -> str:
    """A number of pages in millions or billions, without false precision."""
    return f"{pages / 1e6:,.0f} million" if pages < 1e9 else f"{pages / 1e9:.1f} billion"
