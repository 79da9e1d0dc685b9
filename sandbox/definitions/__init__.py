# SPDX-License-Identifier: Apache-2.0
"""Users' problems: their files run in a jail, and answer from there."""
