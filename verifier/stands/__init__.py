# SPDX-License-Identifier: Apache-2.0
"""Where candidates are tried: this machine's CPUs, a device, the emulators."""
