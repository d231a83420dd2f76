"""What brings work to crawls: one file per chore. Nothing here reads pages."""
