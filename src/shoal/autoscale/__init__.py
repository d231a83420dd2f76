"""As many workers of a crawl as are of use, on this machine."""
