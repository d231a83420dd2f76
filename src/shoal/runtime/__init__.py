"""How a process runs: its event loop, logs, memory, signals, patience, and a watchdog.
Imports core and config.
"""
