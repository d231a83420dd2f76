"""What the documentation names exists: options, make targets, extras, files and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.core.policy import GONE_STATUSES, RETRY_STATUSES
from support.cli import command_names, options_of
from support.makefile import extras, steps_of, targets
from support.markdown import PAGES, README, ROOT, name_of, prose, shell_commands, spans, table_after
from support.operators import is_operators

FIRST_SCREEN = 25
ALWAYS = {"--help", "--version"}
OF_SHOAL = {"--install-completion", "--show-completion"}
"""Options before any command."""

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")

ALL_OPTIONS = ALWAYS.union(*(options_of(name) for name in command_names()))

each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def code_of(page: Path) -> list[str]:
    """All that a reader could type."""
    return spans(page) + [command.text for command in shell_commands(page)]


def unknown_options(code: str) -> set[str]:
    """The options in a piece of code that its command, or any where it names none, lacks."""
    if code.startswith(("pip ", "python ", "make ", "rq ", "--build-arg")) or is_operators(code):
        return set()
    known = ALL_OPTIONS | OF_SHOAL
    for name in command_names():
        if f"{code} ".startswith(f"shoal {name} "):
            known = ALWAYS.union(options_of(name))
    return set(_OPTION.findall(code)) - known


@each_page
def test_options_exist(page: Path) -> None:
    unknown = {option for code in code_of(page) for option in unknown_options(code)}

    assert not unknown


def test_options_that_do_not_exist_are_found() -> None:
    assert unknown_options("--workers") == unknown_options("shoal status shop --watch") == set()
    assert unknown_options("--nonsense") == {"--nonsense"}
    assert unknown_options("shoal status shop --workers 4") == {"--workers"}
    assert unknown_options("shoal dead list shop --limit 5") == set()


@each_page
def test_commands_exist(page: Path) -> None:
    first_words = {code.split()[1] for code in code_of(page) if re.match(r"shoal [a-z]", code)}

    assert first_words <= set(command_names())


@each_page
def test_make_targets_exist(page: Path) -> None:
    named = {code.split()[1] for code in code_of(page) if code.startswith("make ")}

    assert named <= targets()


@each_page
def test_extras_exist(page: Path) -> None:
    installs = [code for code in code_of(page) if code.startswith("pip install")]
    named = {
        name
        for code in installs
        for found in re.findall(r"\[(.+)]", code)
        for name in found.split(",")
    }

    assert named <= extras()


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the anchor of each link that stays in the repository."""
    for target in _LINK.findall(prose(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def anchors_of(page: Path) -> set[str]:
    """The names by which headings can be linked to."""
    headings = _HEADING.findall(prose(page))
    return {_NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    broken = [
        f"{path.name}#{anchor}"
        for path, anchor in links_of(page)
        if not path.exists() or (anchor and anchor not in anchors_of(path))
    ]

    assert not broken


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = {README}, [README]
    while todo:
        for path, _ in links_of(todo.pop()):
            if path.suffix == ".md" and path.exists() and path not in reached:
                reached.add(path)
                todo.append(path)

    assert reached == set(PAGES)


def test_the_readme_says_at_once_how_to_begin() -> None:
    first_screen = README.read_text("utf-8").splitlines()[:FIRST_SCREEN]

    assert any(line.startswith("make demo") for line in first_screen)
    assert any(line.startswith("make test") for line in first_screen)


def test_the_demo_installs_the_core_alone() -> None:
    """And development comes on top of it: either may be first."""
    assert re.findall("scripts/setup (.*)", steps_of("demo")) == ["core"]
    assert re.findall("scripts/setup (.*)", steps_of("setup")) == ["core", "development"]


def test_ci_runs_all_tests() -> None:
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert re.findall(r"make (.+)$", ci, re.MULTILINE) == ["test", "test-all"]


def test_servers_that_cannot_be_installed_stop_no_suite() -> None:
    """Tests say which are missing. Benchmarks cannot do without them."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    steps = re.findall(r"^([a-z-]+):.*\n\t(-?)@scripts/servers$", makefile, re.MULTILINE)
    assert {name: bool(goes_on) for name, goes_on in steps} == {
        **dict.fromkeys(("test", "test-all", "test-deploy"), True),
        **dict.fromkeys(("bench", "bench-quick"), False),
    }


def test_the_decision_on_verdicts_names_the_statuses_that_are_retried() -> None:
    rows = table_after(ROOT / "docs/decisions/0003-verdicts.md", "dead or dropped")
    (retried,) = (what for what, verdict in rows if verdict.startswith("retried"))
    listed = {int(number) for number in re.findall(r"\d{3}", retried)}

    assert "520 to 524" in retried
    assert listed | set(range(520, 524)) == RETRY_STATUSES
    assert ", ".join(map(str, sorted(GONE_STATUSES))) in [what for what, _ in rows]


def test_the_list_of_decisions_has_their_titles_in_order() -> None:
    folder = ROOT / "docs/decisions"
    pages = sorted(page for page in PAGES if page.parent == folder and page.name != "README.md")
    titles = [page.read_text("utf-8").partition("\n")[0].removeprefix("# ") for page in pages]
    entries = [f"- [{title}]({page.name})" for title, page in zip(titles, pages, strict=True)]
    listed = (folder / "README.md").read_text("utf-8").splitlines()

    assert all(title.startswith(page.name[:4]) for title, page in zip(titles, pages, strict=True))
    assert [line for line in listed if line.startswith("- ")] == entries
