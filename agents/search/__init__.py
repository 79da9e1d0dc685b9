# SPDX-License-Identifier: Apache-2.0
"""Where a search looks next: archive, islands, niches and the rules of the championship."""
