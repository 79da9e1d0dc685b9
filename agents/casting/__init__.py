# SPDX-License-Identifier: Apache-2.0
"""Who plays: coders, judges and helpers of a campaign, found by name."""
