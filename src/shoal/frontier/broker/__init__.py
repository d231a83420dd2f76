"""The frontier that keeps most waiting tasks with a broker; Redis schedules, and keeps the next."""
