"""A worker inside Scrapy: from a lease to a request, through the engine, to a verdict."""
