# SPDX-License-Identifier: Apache-2.0
"""Holds work: problems, workloads, the generators and files they are made of, and recipes."""
