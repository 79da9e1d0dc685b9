# SPDX-License-Identifier: Apache-2.0
"""What candidates are held against: torch and libraries, prepared in a process of their own."""
