"""`cooper push` against a server that stands in for the hub: what arrives there is the model with its card."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from cooper_rl import CooperTrainer, InputError, build_config


class Hub(BaseHTTPRequestHandler):
    """The hub's routes: make a repository, ask how to upload, upload large files (git-lfs), commit."""

    created: dict[str, bool]
    files: dict[str, bytes]
    large: dict[str, bytes]

    @property
    def address(self) -> str:
        return f"http://{self.headers['Host']}"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, {"error": "no token"})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.created[name] = asked["visibility"] == "private" if "visibility" in asked else asked["private"]
            return self.answer(200, {"url": f"{self.address}/{name}", "id": name, "name": name})
        if self.path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if self.path.endswith(".git/info/lfs/objects/batch"):
            wanted = [
                {**one, "actions": {"upload": {"href": f"{self.address}/large/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
            ]
            return self.answer(200, {"transfer": "basic", "objects": wanted})
        repository = "/".join(self.path.split("/")[3:5])
        if "/preupload/" in self.path:
            modes = {
                one["path"]: "lfs" if one["path"].endswith(".safetensors") else "regular"
                for one in json.loads(body)["files"]
            }
            files = [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes.items()]
            return self.answer(200, {"files": files})
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.files[f"{repository}/{value['path']}"] = base64.b64decode(value["content"])
            if line["key"] == "lfsFile":
                self.files[f"{repository}/{value['path']}"] = self.large[value["oid"]]
        return self.answer(
            200, {"commitUrl": f"{self.address}/{repository}/commit/1", "commitOid": "1", "success": True}
        )

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        assert hashlib.sha256(data).hexdigest() == self.path.rpartition("/")[2]
        self.large[hashlib.sha256(data).hexdigest()] = data
        self.answer(200, {})

    def do_GET(self) -> None:
        self.answer(200, {"sha": "0", "siblings": [], "id": "x", "files": []})

    def answer(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub():
    handler = type("ThisHub", (Hub,), {"created": {}, "files": {}, "large": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def push(server, *arguments, token="secret", cwd):
    address = f"http://127.0.0.1:{server.server_port}"
    env = {**os.environ, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": address, "HF_TOKEN": token, "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", "from cooper_base.cli.main import app; app()", "push", *map(str, arguments)]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_both_models_of_a_run_arrive_with_their_cards(settings, tmp_path, hub):
    with CooperTrainer.from_config(build_config({**settings, "steps": 1, "evaluation": {"every": 0}})) as trainer:
        trainer.fit(lambda step, metrics: None)
    folder, handler = trainer.directory, hub.RequestHandlerClass
    names = ("--policy", "me/p", "--reward-model", "me/rm", "--private")
    refused = push(hub, folder, *names, token="wrong", cwd=tmp_path)
    assert refused.returncode == 2
    assert "HF_TOKEN" in refused.stderr
    assert handler.files == {}
    done = push(hub, folder, *names, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"pushed: http://127.0.0.1:{hub.server_port}/me/rm/commit/1" in done.stderr
    assert handler.created == {"me/p": True, "me/rm": True}
    for repository, name in (("me/p", "policy"), ("me/rm", "reward_model")):
        written = {one.name: one.read_bytes() for one in (folder / "final" / name).iterdir()}
        sent = {path.removeprefix(f"{repository}/"): data for path, data in handler.files.items() if repository in path}
        assert sent == written
        assert hashlib.sha256(written["model.safetensors"]).hexdigest() in handler.large
        assert {"model.safetensors", "README.md", "tokenizer.json"} <= sent.keys()


@pytest.mark.parametrize(
    ("words", "said"), [(["--policy", "me/p"], "no model here"), ([], "name a repository")], ids=["model", "name"]
)
def test_what_cannot_be_pushed_is_named_before_the_hub_is_asked(tmp_path, words, said):
    """Which is offline in this process, and would say so."""
    ended = CliRunner().invoke(commands, ["push", str(tmp_path), *words])
    assert isinstance(ended.exception, InputError)
    assert said in str(ended.exception)
