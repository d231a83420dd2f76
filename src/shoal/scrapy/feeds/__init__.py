"""Feeds: start URLs that others push to a Redis key, as with scrapy-redis."""
