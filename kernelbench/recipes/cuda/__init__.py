"""Recipes in CUDA C++."""
