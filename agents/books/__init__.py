# SPDX-License-Identifier: Apache-2.0
"""What a campaign keeps of itself: its ledger, where it stands, what it may spend and has asked."""
