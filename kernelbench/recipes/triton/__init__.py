"""Recipes in Triton."""
