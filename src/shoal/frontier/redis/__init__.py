"""The fleet's frontier on Redis or Valkey.

frontier.py   the port, by the name of the crawl
crawl.py      one crawl: its shards as one
shard.py      one shard: the scripts, called with values
lua/          the scripts: each step of a shard, atomic
link.py       the connection: one server, sentinels, a cluster
failures.py   its errors as ours
packing.py    tasks as the queues keep them
exits.py      the exits of all crawls; exit_forms.py  as the scripts keep them
inbox.py      seeds that others leave
find.py       what became of one URL
names.py, rules.py, scripts.py, stats.py, garbage.py   what their names say
"""

from shoal.frontier.redis.frontier import RedisFrontier

__all__ = ["RedisFrontier"]
