"""The image, built once for all tests of it; and the folder of secrets that containers get."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import containers
from support.markdown import ROOT


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of the Containerfile, on a system that has Python and no other program."""
    containers.import_systems()
    return containers.build(ROOT, "localhost/shoal", tmp_path_factory.mktemp("build"))


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """What deploy/make-secrets makes."""
    folder = tmp_path / "secrets"
    ended = containers.run(ROOT / "deploy/make-secrets", folder)
    assert ended.code == 0, ended.err
    return folder
