"""The API as its own description has it, and then some: schemathesis against a real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import Folder, environment
from support.until import LIMIT_S
from support.web import LOCAL, serving_web

FUZZER = Path(sys.executable).with_name("st")
CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    "response_schema_conformance",
)


@pytest.mark.rare
def test_nothing_that_fits_or_does_not_fit_is_a_fault(tmp_path: Path) -> None:
    with serving_web(Folder(tmp_path)) as server:
        server.post("/api/v1/crawls/shop/seeds", {"seeds": ["https://a.example/"]})
        done = subprocess.run(
            [
                *(FUZZER, "run", f"{server.base}/api/openapi.json", "-n", "30", "--seed", "1"),
                *("-H", f"Authorization: {LOCAL['Authorization']}", "--checks", ",".join(CHECKS)),
            ],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=2 * LIMIT_S,
        )
        assert done.returncode == 0, done.stdout[-5000:]
        assert "Traceback" not in server.process.err
