# SPDX-License-Identifier: Apache-2.0
"""Language models behind one Protocol: who answers, what it costs, what can go wrong."""
