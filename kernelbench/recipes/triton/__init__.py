"""Recipes in Triton: templates, and the modules that declare their knobs and launches."""
