"""The results store in a SQLite file. Statements and tables are in `sql/`."""
