"""The fleet's frontier on Redis or Valkey.

frontier.py    the port: finds the crawl by its name
crawl.py       one crawl: its shards as one
shard.py       one shard: calls the scripts
lua/           the scripts: each is one atomic step on a shard
forms.py       arguments and answers of the scripts
packing.py     the form of tasks in the queues
exits.py       the exits of all crawls; exit_forms.py has the form in which they are stored
inbox.py       seeds that other programs leave
find.py        what became of one URL
board.py, names.py, rules.py, scripts.py, stats.py, garbage.py   as their names say

The connection is in shoal/drivers/redis.
"""

from shoal.frontier.redis.frontier import RedisFrontier

__all__ = ["RedisFrontier"]
