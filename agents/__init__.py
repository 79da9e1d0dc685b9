# SPDX-License-Identifier: Apache-2.0
"""What decides: the Coder and the Judge, the archive, the budget and the workflows."""
