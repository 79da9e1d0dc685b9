"""The served viewer as a process: it says where it is, answers, and ends quietly."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
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
serve(Path(sys.argv[1]), *sys.argv[2:], port=0)
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def test_it_answers_at_the_address_it_prints_and_ctrl_c_ends_it(sample: Any) -> None:
    with start(str(sample.home)) as server:
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


def test_on_another_host_the_printed_address_opens_it_and_no_other_does(sample: Any) -> None:
    with start(str(sample.home), "0.0.0.0") as server:
        try:
            assert server.stderr is not None
            first, second = server.stderr.readline(), server.stderr.readline()
            ((port, token),) = re.findall(r"http://\S+:(\d+)/\?token=(\S{32})", first)
            address = f"http://127.0.0.1:{port}"
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{address}/", timeout=60)
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            for path in (f"/?token={token}", f"/c/{sample.campaign}"):
                with opener.open(address + path, timeout=60) as reply:
                    assert sample.campaign in reply.read().decode()
                    assert token not in reply.url
        finally:
            server.kill()
    assert "whoever has this address reads all campaigns" in second
