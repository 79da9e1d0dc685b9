"""Looks for secrets in files, in the environment and on the network (B14, E2, E3).

Whatever it finds it says by raising; where everything is closed it answers zeros.
"""

import glob
import os
import pathlib
import socket
import sys

WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "HOME", "USER")
FILES = (
    "/etc/shadow",
    "/etc/passwd",
    "/root/.bashrc",
    "/root/.ssh/id_rsa",
    "/home/*/.bashrc",
    "/proc/1/environ",
    "/var/log/*",
    "/tmp/kw-run-*/candidate.*",
)

found = [name for name in os.environ if any(word in name for word in WORDS)]
for pattern in FILES:
    for file in glob.glob(pattern):
        if file.startswith(sys.argv[-1]):
            continue
        try:
            if pathlib.Path(file).read_bytes():
                found.append(file)
        except OSError:
            continue
for file in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        if b"kernelwright.verifier" in pathlib.Path(file).read_bytes():
            found.append(file)
    except OSError:
        continue
try:
    socket.socket()
    found.append("a socket")
except OSError:
    pass


def run(y):
    if found:
        raise PermissionError(f"open to a candidate: {found}")
    y.zero_()
