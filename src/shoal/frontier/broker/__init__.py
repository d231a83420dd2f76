"""The frontier whose backlog a broker carries: Redis schedules, and holds a window of it."""
