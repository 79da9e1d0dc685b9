# SPDX-License-Identifier: Apache-2.0
"""A runner's process that has begun, and the memory that it is handed.

It knows neither how a process is started nor what a candidate's program is made of.
"""

from __future__ import annotations

import socket
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...errors import SandboxError
from ..isolation.model import Job
from .gate import Gate

SIZES = struct.Struct("<QQ")
"""Of the two memories whose descriptors come with it; `triton_on_cpu/interpreting.py` reads it."""


class Plane(NamedTuple):
    """The shared memory handed to a process: descriptors it may keep, and their sizes."""

    input_fd: int
    output_fd: int
    input_bytes: int
    output_bytes: int


@dataclass
class Begun:
    """A process with what belongs to it."""

    folder: tempfile.TemporaryDirectory[str]
    channel: socket.socket
    gate: Gate
    job: Job

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Puts the candidate's files where the process looks for them."""
        fill_folder(Path(self.folder.name), files)

    def give(self, plane: Plane) -> None:
        """Hands a process in waiting the memory of its calls. Raises SandboxError."""
        sizes = SIZES.pack(plane.input_bytes, plane.output_bytes)
        try:
            socket.send_fds(self.channel, [sizes], [plane.input_fd, plane.output_fd])
        except OSError as error:
            raise SandboxError(f"a runner that was waiting has ended: {error}") from error

    def close(self) -> None:
        """Ends it."""
        self.channel.close()
        self.job.kill()
        self.gate.close()
        self.folder.cleanup()


def fill_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts a candidate's files into the folder of its process."""
    for name, content in files.items():
        file = folder / name
        file.write_bytes(content)
        file.chmod(0o755)
