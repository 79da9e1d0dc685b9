"""Who plays: coders, judges and helpers of a campaign, found by name."""
