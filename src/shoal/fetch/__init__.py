"""Getting pages: one port, and what implements and guards it."""
