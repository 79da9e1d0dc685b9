"""CUDA C++ compiled by an ordinary C++ compiler and run on the CPU: header, runtime, build."""
