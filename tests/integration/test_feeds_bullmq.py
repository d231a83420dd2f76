"""BullMQ as a real client: the worker that the guide shows, run by Node.js."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.markdown import ROOT, blocks
from support.processes import Folder
from support.redis_servers import RedisServer
from support.server_process import missing_server, program
from support.until import LIMIT_S, until_now

MODULES = ROOT / ".bullmq" / "node_modules"
GUIDE = ROOT / "docs" / "guides" / "other-languages.md"
URLS = [f"https://shop.example/p/{number}" for number in range(5)]
PRODUCER = """
import { Queue } from "bullmq";
import { Redis } from "ioredis";

const redis = new Redis("redis://queue-host", { maxRetriesPerRequest: null });
const queue = new Queue("crawl", { connection: redis });
for (const url of process.argv.slice(2)) await queue.add("page", { url, priority: 5 });
await queue.add("page", { uri: "no task" });
await queue.close();
await redis.quit();
"""


@pytest.mark.rare
def test_the_worker_of_the_guide(tmp_path: Path, redis_server: RedisServer) -> None:
    if not (MODULES / "bullmq").exists():
        missing_server("bullmq", "run scripts/setup bullmq")
    folder = Folder(tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    (worker,) = (b.text for b in blocks(GUIDE) if b.text.startswith("// worker.mjs\n"))
    for name, text in (("worker.mjs", worker), ("producer.mjs", PRODUCER)):
        folder.write(name, re.sub("queue-host", f"127.0.0.1:{redis_server.port}", text))
    node = program("node")
    subprocess.run(
        [node, "producer.mjs", *URLS], cwd=tmp_path, check=True, timeout=LIMIT_S, text=True
    )
    with folder.running("worker.mjs", program=node) as running:

        def are_handed_over() -> bool:
            assert not running.has_ended(), running.err
            return redis_server.cli("LLEN", "urls") == str(len(URLS) + 1)

        until_now("the jobs to be handed over", are_handed_over)
    address = f"{redis_server.url}?key=urls"
    fed = folder.process("feed", "shop", address, "--until-empty", "--json").json()
    assert (fed["added"], fed["rejected"], fed["waiting"]) == (len(URLS), 1, 0)
    record = folder.find("shop", URLS[0])
    assert record is not None
    assert record.task.priority == 5
