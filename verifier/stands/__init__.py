"""Where candidates are tried: this machine's CPUs, a device, the emulators."""
