# SPDX-License-Identifier: Apache-2.0
"""Recipes in Triton: templates, and the modules that declare their knobs and launches."""
