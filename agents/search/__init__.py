"""Where a search looks next: archive, islands, niches and the rules of the championship."""
