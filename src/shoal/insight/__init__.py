"""Answers to questions about a crawl: how far, how fast, what became of this URL."""
