"""The file in which a process says that it is alive, and `shoal worker --alive`, which looks."""

from __future__ import annotations

import errno
import re
import time
from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.runtime import alive
from shoal.runtime.alive import DEAD_AFTER_S, signs_of_life, silent_s
from support.processes import Ended, Folder
from support.until import until


async def test_signs_come_again_and_again_and_end_with_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "WRITE_EVERY_S", 0.001)
    file = tmp_path / "alive"
    with signs_of_life(file):
        first = file.read_text()
        await until("another sign", lambda: file.read_text() != first)
        assert silent_s(file) is not None
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_that_is_full_for_a_while_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, failures, write = tmp_path / "alive", list[Path](), alive._write

    def full_at_first(file: Path) -> None:
        if len(failures) < 3:
            failures.append(file)
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file)

    monkeypatch.setattr(alive, "WRITE_EVERY_S", 0.001)
    with signs_of_life(file):
        first = file.read_text()
        monkeypatch.setattr(alive, "_write", full_at_first)
        await until("another sign", lambda: file.read_text() != first)
    assert len(failures) == 3


async def test_a_file_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"^--alive-file .*/no/alive: No such file or directory$"),
        signs_of_life(tmp_path / "no" / "alive"),
    ):
        pass


def look(folder: Path) -> Ended:
    return Folder(folder).call("worker", "--alive", env={"SHOAL_ALIVE_FILE": "alive"})


@pytest.mark.parametrize(
    ("ago_s", "code", "said"),
    [
        (5, 0, r"alive \d+ s ago\n"),
        (DEAD_AFTER_S + 5, 1, r"shoal: no sign of life for \d+ s\n"),
        (-100, 1, r"shoal: no sign of life in alive\n"),  # The machine was started anew.
    ],
)
def test_who_looks_is_told_how_long_ago_it_was(
    ago_s: float, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "alive").write_text(f"{time.monotonic() - ago_s:.3f}")
    ended = look(tmp_path)
    assert ended.code == code
    assert re.fullmatch(said, ended.out + ended.err)


@pytest.mark.parametrize("content", [None, "", "garbage"])
def test_no_sign_at_all(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "alive").write_text(content)
    assert look(tmp_path) == Ended(1, "", "shoal: no sign of life in alive\n")


def test_who_looks_must_say_where(tmp_path: Path) -> None:
    ended = Folder(tmp_path).call("worker", "--alive")
    assert ended.code == 2
    assert ended.err == (
        "shoal: --alive needs the --alive-file of the worker, or SHOAL_ALIVE_FILE\n"
    )
