"""What doctor tells of this machine, and what it never tells."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from stscurate.cli import app
from stscurate.doctor import examine


class Answer(BaseHTTPRequestHandler):
    """Answers the status that its path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/").partition("?")[0]))
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


def test_tokens_are_told_by_presence_never_by_value(tmp_path: Path) -> None:
    secret = "hf_" + "aB3dE6gH9j" * 4
    checks = {check.name: check for check in examine(environment={"HF_TOKEN": secret}, folder=tmp_path)}
    assert (checks["HF_TOKEN"].state, checks["HF_TOKEN"].found) == ("ok", "set")
    assert (checks["GITHUB_TOKEN"].state, checks["GITHUB_TOKEN"].found) == ("note", "not set")
    assert "export GITHUB_TOKEN" in checks["GITHUB_TOKEN"].mend
    assert secret not in repr(checks)
    assert checks["torch"].found.startswith(version("torch"))
    assert all(check.mend for check in checks.values() if check.state != "ok")
    assert not [check for check in checks.values() if check.mend and check.state == "ok"]


def test_an_endpoint_is_asked_only_when_named_and_told_without_its_secrets(tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://user:pass@127.0.0.1:{unused.getsockname()[1]}/v1?key=abc"
        urls = [f"http://127.0.0.1:{server.server_port}/{path}" for path in ("401?key=abc", "503")]
        checks = examine(endpoints=[*urls, closed, "nonsense"], folder=tmp_path)[-4:]
    server.shutdown()
    server.server_close()
    assert [check.state for check in checks] == ["ok", "bad", "bad", "bad"]
    assert checks[0].found == "answers 401"
    assert "look into its log" in checks[1].mend
    assert "no answer (ConnectionError)" in checks[2].found
    assert not [word for word in ("abc", "user", "pass") if word in repr(checks[0]) + checks[2].name + checks[2].found]


def test_doctor_command_gives_one_object_and_fails_where_a_check_fails(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["doctor", "--json", "--endpoint", "http://127.0.0.1:9/"])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert {"state", "name", "found", "mend"} == set(told["checks"][0])
    assert told["checks"][-1]["state"] == "bad"
    assert told["checks"][-1]["mend"] in told["error"]  # also with --quiet, where no check is shown


def test_each_part_of_the_machine_has_its_line() -> None:
    parts = {"Python", "processor", "threads", "GPU", "disk", "all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"}
    assert parts <= {check.name for check in examine()}
