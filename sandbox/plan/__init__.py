"""Launch plans: what a device-only candidate declares about its launches, as data."""
