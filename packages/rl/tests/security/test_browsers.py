"""Pages of other sites in a browser on this machine: they neither read nor change what the service has learned."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from runs.browser import BROWSER, DRIVER, MISSING, browser
from security.attacking import raw
from service.answered import groups
from service.served import Served
from waiting import wait_for

pytestmark = pytest.mark.xdist_group("browsers")
"""One worker, since starting their server takes longer than most of these tests."""
FORGING = (
    "http://evil.example",
    "null",
    "http://127.0.0.1:1",
    "http://localhost:8766",
    "https://127.0.0.1.evil.example",
)


@pytest.fixture(scope="module")
def server(module_server) -> Served:
    """A server of the defaults, with two steps learned and a checkpoint of each."""
    server = module_server(name="browsers", checkpoint_every=1)
    client = server.client()
    for step in (1, 2):
        client.score(groups(10 * step), step=step)
        client.update(step)
    assert wait_for(lambda: checkpoints(server) == [0, 1, 2], 60)  # written behind the answer
    return server


def checkpoints(server: Served) -> list[int]:
    return server.get("/v1/info").json()["checkpoints"]


@pytest.mark.slow
@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "169.254.169.254",
                                  "10.0.0.1:{port}", "localhost.evil.example", "[2001:db8::1]", "["])  # fmt: skip
def test_another_name_is_refused(server, host):
    """DNS rebinding: the page's own name resolves to 127.0.0.1."""
    port = server.url.rsplit(":", 1)[1]
    for method, path in (("GET", "/v1/info"), ("GET", "/metrics"), ("POST", "/v1/restore"), ("GET", "/healthz")):
        answer = httpx.request(method, server.url + path, headers={"Host": host.format(port=port)})
        assert answer.status_code in (400, 403), (method, path, answer.text)
    assert checkpoints(server) == [0, 1, 2]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:{port}"])
def test_the_names_of_this_machine_are_answered(server, host):
    port = server.url.rsplit(":", 1)[1]
    assert httpx.get(server.url + "/v1/info", headers={"Host": host.format(port=port)}).status_code == 200


def test_a_client_without_a_name_is_no_browser(server):
    assert b" 200 " in raw(server, b"GET /healthz HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize("origin", FORGING)
def test_a_foreign_page_changes_nothing(server, origin):
    for kind in ("text/plain", "application/json"):
        headers = {"Origin": origin, "Content-Type": kind}
        for path, body in (("/v1/restore", b'{"step": 0}'), ("/v1/score", b"{}"), ("/v1/steps/3/commit", b"")):
            answer = httpx.post(server.url + path, content=body, headers=headers)
            assert answer.status_code == 403, (path, answer.text)
            assert "access-control-allow-origin" not in answer.headers
    assert httpx.get(server.url + "/v1/info", headers={"Origin": origin}).status_code == 403
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    assert httpx.options(server.url + "/v1/restore", headers=asked).status_code == 403
    assert checkpoints(server) == [0, 1, 2]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_foreign_page_cannot_even_ask(server, site):
    headers = {"Sec-Fetch-Site": site}
    assert httpx.get(server.url + "/v1/steps/2?wait_s=60", headers=headers).status_code == 403
    assert httpx.get(server.url + "/docs", headers=headers).status_code == 200  # a link to it may be followed


def test_the_server_s_own_page_may(server):
    """The page /docs tries requests out."""
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert httpx.post(server.url + "/v1/restore", json={"step": 2}, headers=headers).status_code == 200


@pytest.mark.parametrize("kind", [None, "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded",
                                  "multipart/form-data; boundary=x", "application/jsonp", "text/json", ""])  # fmt: skip
def test_a_body_that_is_not_declared_as_json_is_refused(server, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    answer = httpx.post(server.url + "/v1/restore", content=b'{"step": 0}', headers=headers)
    assert (answer.status_code, "application/json (curl: --json)" in answer.json()["error"]) == (415, True)
    assert checkpoints(server) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_is_taken(server, kind):
    answer = httpx.post(server.url + "/v1/restore", content=b'{"step": 2}', headers={"Content-Type": kind})
    assert answer.status_code == 200
    assert server.post("/v1/checkpoints").status_code == 200  # an empty body has no type


def test_a_token_in_the_browser_does_not_help_a_foreign_page(make_server):
    """A browser sends the password of an address to that address, whoever's page asks for it."""
    server = make_server(name="basic", token_env="COOPER_TEST_TOKEN")
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
        answer = httpx.post(server.url + "/v1/restore", json={"step": 0}, auth=("x", "secret"), headers=headers)
        assert answer.status_code == 403
    proxied = httpx.get(server.url + "/v1/info", auth=("x", "secret"), headers={"Host": "reward.example.com"})
    assert proxied.status_code == 200  # a proxy may keep its own name, because the token decides


PAGE = """<!doctype html><title>page</title><form id=f method=post enctype=text/plain><input name=a value=b></form>
<iframe name=frame></iframe><script>
const told = [];
async function attack(url) {
  const bodies = [new Blob(['{"step": 0}']), new Blob(['{"step": 0}'], {type: "text/plain"}), '{"step": 0}',
                  new URLSearchParams({'{"step": 0}': ""})];
  for (const mode of ["no-cors", "cors"]) {
    for (const body of bodies) {
      for (const path of ["/v1/restore", "/v1/checkpoints"]) {
        try { const reply = await fetch(url + path, {method: "POST", mode, body, credentials: "include"});
              told.push(reply.type + " " + reply.status); } catch (error) { told.push("error"); }
      }
    }
    try { const reply = await fetch(url + "/v1/restore", {method: "POST", mode, body: bodies[0],
            headers: {"Content-Type": "application/json"}}); told.push(reply.type + " " + reply.status);
    } catch (error) { told.push("error"); }
    for (const path of ["/v1/info", "/metrics"]) {
      try { const reply = await fetch(url + path, {mode}); told.push("read " + (await reply.text()).length);
      } catch (error) { told.push("error"); }
    }
  }
  navigator.sendBeacon(url + "/v1/restore", bodies[1]);
  f.action = url + "/v1/restore"; f.target = "frame"; f.submit();
  await new Promise((done) => setTimeout(done, 500));
  return told;
}
</script>"""


@pytest.fixture
def page() -> Iterator[str]:
    """A page of another origin on this machine."""

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER or not DRIVER, reason=MISSING)
def test_a_page_in_a_real_browser_changes_and_reads_nothing(server, page, tmp_path: Path):
    pytest.importorskip("selenium")
    with browser(tmp_path / "profile") as driver:
        driver.set_script_timeout(60)
        driver.get(page)
        told = driver.execute_async_script(f"attack('{server.url}').then(arguments[0])")
        assert {one for one in told if not one.startswith("opaque")} <= {"error", "read 0"}
        driver.get(server.url + "/healthz")  # an address typed in is answered
        assert "alive" in driver.page_source
    assert checkpoints(server) == [0, 1, 2]
    assert server.client().last_step == 2


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER or not DRIVER, reason=MISSING)
def test_a_rebound_name_in_a_real_browser_reads_nothing(server, tmp_path: Path):
    """evil.example resolves to 127.0.0.1, as after a rebinding: the same origin, for the browser."""
    pytest.importorskip("selenium")
    port = server.url.rsplit(":", 1)[1]
    with browser(tmp_path / "profile", "--host-resolver-rules=MAP evil.example 127.0.0.1") as driver:
        driver.set_script_timeout(60)
        driver.get(f"http://evil.example:{port}/v1/info")
        assert "answers to 127.0.0.1 and localhost alone" in driver.page_source
        status = driver.execute_async_script(
            "fetch('/v1/restore', {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}})"
            ".then((reply) => arguments[0](reply.status))"
        )
        assert status == 403
    assert checkpoints(server) == [0, 1, 2]
