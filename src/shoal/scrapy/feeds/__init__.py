"""Start URLs that others leave in Redis."""
