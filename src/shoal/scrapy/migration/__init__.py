"""From a queue of scrapy-redis into a frontier."""
