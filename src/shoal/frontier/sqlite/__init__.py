"""The frontier in one SQLite file: each step is a transaction, and its statements are in `sql/`."""
