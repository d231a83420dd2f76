"""A billion pages on paper: a model, a simulation, and the real frontier on a clock of its own."""
