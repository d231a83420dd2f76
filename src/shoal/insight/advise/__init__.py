"""Advises on a crawl: what limits it, how many workers it can use, when it will be done, and what
that costs.

    look ─▶ situation ─▶ queues, fleet ─▶ fluid ─▶ advice ─▶ words

`look` and `wanted` query the frontier. `prices` reads shoal.toml. The rest is pure.
"""
