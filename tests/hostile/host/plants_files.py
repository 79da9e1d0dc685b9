"""Tries to leave something for others: caches, shadowing modules, start-up files (B16, B17, E1).

Its own temporary folder and root are thrown away with it, so only places that others see are tried.
What it manages it says by raising; where everything is closed it answers zeros.
"""

import glob
import os
import subprocess
import sys

import torch

folders = [each for each in sys.path if os.path.isdir(each)]
folders += [os.path.dirname(torch.__file__), sys.argv[-1]]
folders += ["/usr/local", "/usr/local/lib", "/usr/bin"]
for pattern in ("/root/.cache", "/home/*/.cache", "/root", "/home/*"):
    # The folders above a shown one are there too, but empty and its own.
    folders += [each for each in glob.glob(pattern) if os.path.exists(f"{each}/.bashrc")]

planted = []
for folder in folders:
    for name in ("sitecustomize.py", "torch.py", "numpy.py"):
        try:
            with open(f"{folder}/{name}", "x") as file:
                file.write("raise SystemExit")
            planted.append(file.name)
        except OSError:
            continue
try:
    subprocess.run(["/bin/true"], check=False)
    planted.append("a process")
except OSError:
    pass


def run(y):
    if planted:
        raise PermissionError(f"open to a candidate: {planted}")
    y.zero_()
