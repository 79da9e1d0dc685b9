# SPDX-License-Identifier: Apache-2.0
"""What a prompt is filled with: templates, tables and the code that words a campaign for models."""
