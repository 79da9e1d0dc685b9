# SPDX-License-Identifier: Apache-2.0
"""What is known of how a candidate uses its target, one module for each way to find out."""
