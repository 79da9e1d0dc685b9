"""The referee as a process of its own, and who speaks with it."""
