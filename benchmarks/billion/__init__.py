"""Plans a crawl of a billion pages: a model, a simulation, and trials of the real frontier."""
