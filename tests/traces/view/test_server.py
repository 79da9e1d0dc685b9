"""The served viewer as a process: it says where it is, answers, and ends quietly."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import StorageError, UsageError
from kernelwright.traces.view.server import serve

CODE = """
import sys
from pathlib import Path
from kernelwright.traces.view.server import serve
serve(Path(sys.argv[1]), port=0)
"""


def test_it_answers_at_the_address_it_prints_and_ctrl_c_ends_it(sample: Any) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE, str(sample.home)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    ) as server:
        try:
            assert server.stderr is not None
            first, second = server.stderr.readline(), server.stderr.readline()
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", first)
            with urllib.request.urlopen(address, timeout=60) as reply:
                assert sample.campaign in reply.read().decode()
            server.send_signal(signal.SIGINT)
            rest = server.communicate(timeout=60)[1]
        finally:
            server.kill()
    assert server.returncode == 0
    assert "ssh -L" in second
    assert rest == ""


def test_a_taken_port_and_a_missing_store_are_told(sample: Any, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used") as caught:
            serve(sample.home, port=port)
    assert "--port 0" in caught.value.hint
    with pytest.raises(StorageError, match="there is no store"):
        serve(tmp_path / "nothing")
