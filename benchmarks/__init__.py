"""Benchmarks: `python -m benchmarks`. Each prints a table and keeps its raw figures in `out/`."""
