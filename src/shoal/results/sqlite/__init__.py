"""Results in one file, statements in `sql/`."""
