"""How a process runs: its event loop, logs, memory, signals, waiting, children and watchdog.

Imports core and config.
"""
