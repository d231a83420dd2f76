"""Computes what a billion pages need, and compares a simulation and the frontier with the model."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from benchmarks.billion import needs, page_log, paper, reading
from benchmarks.billion.model import Course, course_of
from benchmarks.billion.progress import ProgressLine
from benchmarks.billion.simulation import simulate
from benchmarks.billion.stores import STORES, Figures
from benchmarks.billion.web import Web, hard_web_of, web_of
from benchmarks.report import keep, markdown
from shoal.insight.figures import duration

AIM = 0.05
"""How far simulation and frontier may deviate from the model."""
SCALE = 1000
LEAST_PAGES = 10_000
"""Fewer pages mean so few hosts that single ones matter, which a fluid does not model."""
MOST_PAGES = 10_000_000

HELP = """
parts:
  paper      the tables of docs/scale.md, from figures that were measured: at once
  course     how the crawl goes by the model, and page by page at 1:1000: half a minute
  trial      the real frontier on Redis and SQLite, fetches made up, clock accelerated:
             two minutes for 100,000 pages, six on Redis for a million
  page-log   bytes and rows/s of the page log in PostgreSQL: half a minute
  reading    what a large page costs a worker: seconds
Without a part: paper, course and trial.

examples:
  python -m benchmarks.billion paper                  what 10^9 pages need
  python -m benchmarks.billion trial --store redis    only this frontier
  python -m benchmarks.billion trial --store redis --pages 1000000
                                                      ten million URLs: 1.5 GB of memory

Tables go to the output, progress to the error output. Raw figures go to benchmarks/out. Ends with
code 1 if simulation or frontier are more than 5 % away from the model, or a host was hit too soon.
"""


def main() -> int:
    """Run the parts that the arguments name. Returns the exit code."""
    args = _arguments()
    logging.disable(logging.WARNING)
    found: dict[str, Any] = {}
    for part in args.parts or ["paper", "course", "trial"]:
        found[part] = PARTS[part](args)
    if args.json:
        print(msgspec.json.encode(found).decode())
    else:
        print(f"raw figures: {keep('billion', found)}", file=sys.stderr)
    flaws = [flaw for part in found for flaw in _flaws(found[part])]
    for flaw in flaws:
        print(f"billion: {flaw}", file=sys.stderr)
    return 1 if flaws else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.billion",
        description=__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}: see below")
    parser.add_argument(
        "--pages", type=_pages, default=100_000, help="of the trial; ten URLs are known for each"
    )
    parser.add_argument(
        "--store", choices=[*STORES], nargs="+", default=[*STORES], help="of the trial"
    )
    parser.add_argument("--json", action="store_true", help="print one object instead of tables")
    args = parser.parse_args()
    if unknown := [part for part in args.parts if part not in PARTS]:
        parser.error(f"no such part: {unknown[0]} (there are {', '.join(PARTS)})")
    return args


def _pages(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or not LEAST_PAGES <= int(digits) <= MOST_PAGES:
        raise argparse.ArgumentTypeError(f"a number from {LEAST_PAGES:,} to {MOST_PAGES:,}")
    return int(digits)


def _paper(args: argparse.Namespace) -> dict[str, Any]:
    if not args.json:
        for name, table in paper.tables().items():
            print(f"{name}\n\n{table}")
    worker = needs.worker_needs()[-1]
    frontiers = [needs.frontier_need(layout) for layout in needs.LAYOUTS]
    return {
        "workers": needs.worker_needs(),
        "frontier": frontiers,
        "fleet": [needs.fleet_need(worker, frontier) for frontier in frontiers],
        "order": needs.breaks(),
    }


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl by the model, and simulated page by page."""

    web: Web
    model: Course
    simulated: Course

    @property
    def off(self) -> float:
        return self.simulated.seconds / self.model.seconds - 1


def _course(args: argparse.Namespace) -> list[Pair]:
    pages = needs.PAGES // SCALE
    webs = {
        f"as 10^9 pages, 1:{SCALE:,}": web_of(pages, needs.PER_S / SCALE),
        "at the limit of the hosts": hard_web_of(pages),
    }
    pairs, rows = [], []
    for name, web in webs.items():
        with ProgressLine(f"simulation, {name}", web.pages) as line:
            pair = Pair(web=web, model=course_of(web), simulated=simulate(web, line.at))
        pairs.append(pair)
        rows.append(
            (name, *_course_row(pair.model), *_course_row(pair.simulated), f"{pair.off:+.2%}")
        )
    if not args.json:
        heads = ("pages/s", "takes", "longest queue")
        print(markdown(("", *(f"model: {h}" for h in heads), *heads, "off"), rows))
    return pairs


def _course_row(course: Course) -> Sequence[str]:
    return f"{course.per_s:,.0f}", duration(course.seconds), f"{course.longest_queue:,.0f}"


def _trial(args: argparse.Namespace) -> list[Figures]:
    web = hard_web_of(args.pages)
    found = []
    for store in args.store:
        with ProgressLine(f"{store}, {args.pages:,} pages", args.pages) as line:
            found.append(STORES[store](web, line.at))
    if not args.json:
        rows = [(name, *(told(each) for each in found)) for name, told in TRIAL_ROWS.items()]
        print(markdown(("", *(each.store for each in found)), rows))
    return found


TRIAL_ROWS: dict[str, Callable[[Figures], str]] = {
    "pages fetched": lambda it: f"{it.pages:,}",
    "URLs known, queued": lambda it: f"{it.urls:,}, {it.waiting:,}",
    "bytes per URL, all told": lambda it: f"{it.bytes_per_url:.0f}",
    "of these, to know it": lambda it: f"{it.known_bytes:.0f}" if it.known_bytes else "",
    "µs per page, client and frontier": lambda it: f"{it.us:.0f}",
    "of these, Redis's CPU": lambda it: f"{it.server_us:.0f}" if it.server_us else "",
    "round trips per 50 pages": lambda it: f"{it.asked / it.pages * 50:.1f}",
    "finished after, by its clock": lambda it: f"{it.seconds:.1f} s",
    "by the model": lambda it: f"{it.model_s:.1f} s ({it.off:+.2%})",
    "shortest time between two hits of a host": lambda it: f"{it.least_gap_s:.3f} s",
    "longest wait of a host beyond its turn": lambda it: f"{it.worst_wait_s:.2f} s",
    "longest queue of a host": lambda it: f"{it.longest_queue:,} ({it.longest_queue_of})",
    "fork, ms per GB": lambda it: f"{it.rewrite.stall_ms_per_gb:.0f}" if it.rewrite else "",
    "copied during a rewrite": lambda it: f"{it.rewrite.copied_share:.0%}" if it.rewrite else "",
    "a rewrite took": lambda it: f"{it.rewrite.seconds:.0f} s" if it.rewrite else "",
}


def _page_log(args: argparse.Namespace) -> dict[str, page_log.Saved]:
    found = page_log.measure(lambda text: print(text, file=sys.stderr))
    if not args.json:
        rows = [
            (
                name,
                f"{it.pages_per_s:,.0f}",
                f"{it.server_us:.0f}",
                f"{it.bytes_per_page:,.0f}",
                f"{it.index_bytes:,.0f}",
            )
            for name, it in found.items()
        ]
        heads = (
            "pages/s, one client",
            "its CPU µs per page",
            "bytes per page",
            "of these, indexes",
        )
        print(markdown(("PostgreSQL", *heads), rows))
    return found


def _reading(args: argparse.Namespace) -> reading.Reading:
    found = reading.measure()
    if not args.json:
        rows = [
            (f"{reading.SMALL_KB} KB", f"{found.small_us:,.0f}"),
            (f"{reading.LARGE_KB} KB", f"{found.large_us:,.0f}"),
            ("each further KB", f"{found.us_per_kb:.1f}"),
        ]
        print(markdown(("to read a page", "CPU µs"), rows))
    return found


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "paper": _paper,
    "course": _course,
    "trial": _trial,
    "page-log": _page_log,
    "reading": _reading,
}


def _flaws(part: Any) -> list[str]:
    """The aims that a part missed, as lines for people."""
    found = []
    for each in part if isinstance(part, list) else []:
        name = each.store if isinstance(each, Figures) else "the simulation"
        if abs(each.off) > AIM:
            found.append(f"{name} is {each.off:+.1%} away from the model (aim: {AIM:.0%})")
        if isinstance(each, Figures) and each.least_gap_s < hard_web_of(each.pages).turn_s - 1e-5:
            found.append(f"{name} let a host be hit again after {each.least_gap_s:.3f} s")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
