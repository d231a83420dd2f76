"""The frontier in one file: each step is a transaction, its statements are in `sql/`."""
