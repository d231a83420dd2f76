"""What holds a crawl up, how many workers it can use, until when it takes, and what that costs.

    look ─▶ situation ─▶ queues, fleet ─▶ fluid ─▶ advice ─▶ words

Only `look` asks anybody. The rest is pure.
"""
