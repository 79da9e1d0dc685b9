"""What `import kernelwright` offers, and what the command line is written on."""
