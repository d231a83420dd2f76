"""What a worker tells malloc: a page's tree is not fetched from the system again and again."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

FAULTS_OF_A_WORKER = """
import resource
from selectolax.lexbor import LexborHTMLParser
from shoal.runtime.memory import settle_in

page = b"<p class='a'>text <a href='/b'>link</a></p>" * 300
settle_in()


def read():
    held = LexborHTMLParser(page).css("a")
    return [node.text() for node in held]


read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(500):
    read()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 500)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_reading_a_page_faults_no_memory_in() -> None:
    told = subprocess.run(
        [sys.executable, "-c", FAULTS_OF_A_WORKER], capture_output=True, check=True, text=True
    )
    assert float(told.stdout) < 1.0, "without settle_in it is about forty"
