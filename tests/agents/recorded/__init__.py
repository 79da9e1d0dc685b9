"""Campaigns whose models were played by readers of the prompts, as JSON beside this file."""
