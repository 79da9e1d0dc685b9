# SPDX-License-Identifier: Apache-2.0
"""What `import kernelwright` offers, and what the command line is written on."""
