"""Migration (`shoal scrapy migrate`): from a queue of scrapy-redis into a frontier."""
