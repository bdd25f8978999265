"""The client of a vLLM server, against a stub that records what it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proxmo.config import RolloutConfig
from proxmo.errors import RolloutError
from proxmo.policies.engines import EngineRequest
from tests.fakes import tiny_tokenizer

pytest.importorskip("openai", reason="the client needs openai")
from proxmo.policies.vllm_server import VllmServerPolicy  # noqa: E402

END = 3
IDS = [7, 8, END]


@pytest.fixture
def stub() -> Iterator[Any]:
    """A server: `asked` is every (route, body), `status` what it answers, `ids` what it says."""
    state = SimpleNamespace(asked=[], status={}, ids=IDS)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            state.asked.append((self.path, body))
            choice = {
                "index": 0,
                "text": "",
                "finish_reason": "stop",
                "token_ids": state.ids,
                "logprobs": {"token_logprobs": [-0.5] * len(state.ids)},
            }
            kind = {"id": "x", "object": "text_completion", "created": 0, "model": "tiny"}
            self._answer({**kind, "choices": [choice]} if "completions" in self.path else {})

        def _answer(self, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(state.status.get(self.path, 200))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()


def connect(stub: Any) -> VllmServerPolicy:
    return VllmServerPolicy(request_for(stub.url))


def request_for(url: str) -> EngineRequest:
    return EngineRequest(
        source="tiny",
        tokenizer=tiny_tokenizer(),
        end_ids=(END,),
        dtype="float32",
        device="cpu",
        max_tokens=64,
        rollout=RolloutConfig(engine="vllm-server", engine_url=url),
    )


def test_tokens_go_in_and_come_out_as_they_are(stub: Any):
    prompt = tiny_tokenizer()("now 1")["input_ids"]
    [response] = connect(stub).generate([prompt], temperature=0.7, max_new_tokens=5, seed=(1,))
    assert (response.ids, response.logprobs) == ((7, 8, END), (-0.5, -0.5, -0.5))
    assert (response.finish_reason, response.error, response.weight_version) == ("stop", None, 0)
    [(route, asked)] = stub.asked
    assert route == "/v1/completions" and asked["prompt"] == prompt
    assert (asked["temperature"], asked["max_tokens"], asked["logprobs"]) == (0.7, 5, 0)
    # The turn ends by our tokens only, and they come back as ids, not as text.
    assert asked["stop_token_ids"] == [END] and asked["ignore_eos"] and asked["return_token_ids"]


def test_a_response_without_an_end_was_cut(stub: Any):
    stub.ids = [7, 8]
    [response] = connect(stub).generate([[5]], temperature=1.0, max_new_tokens=2, seed=(1,))
    assert response.finish_reason == "length"


def test_seeds_are_of_the_prompt_and_not_of_its_place(stub: Any):
    policy = connect(stub)
    policy.generate([[5], [6]], temperature=1.0, max_new_tokens=2, seed=(1,), seeds=[(4,), (5,)])
    policy.generate([[6]], temperature=1.0, max_new_tokens=2, seed=(2,), seeds=[(5,)])
    seeds = {(asked["prompt"][0], asked["seed"]) for _, asked in stub.asked}
    assert len(seeds) == 2


def test_new_weights_are_read_while_nothing_is_in_flight(stub: Any, tmp_path: Path):
    policy = connect(stub)
    policy.load_weights(tmp_path, 4)
    routes = [route for route, _ in stub.asked]
    assert routes == ["/pause?mode=wait", "/collective_rpc", "/reset_prefix_cache", "/resume"]
    assert stub.asked[1][1] == {
        "method": "proxmo_load_weights",
        "args": [str(tmp_path.resolve())],
    }
    assert policy.weight_version == 4


def test_a_server_without_its_development_routes_is_told(stub: Any, tmp_path: Path):
    stub.status["/pause?mode=wait"] = 404
    with pytest.raises(RolloutError, match="VLLM_SERVER_DEV_MODE=1"):
        connect(stub).load_weights(tmp_path, 1)


def test_a_request_that_fails_is_an_error_of_its_own_response(stub: Any):
    policy = connect(stub)
    stub.status["/v1/completions"] = 400
    [response] = policy.generate([[5]], temperature=1.0, max_new_tokens=2, seed=(1,))
    assert response.error is not None and "400" in response.error


def test_nobody_at_the_address_is_one_clear_error():
    with pytest.raises(RolloutError, match="no vLLM server answers at http://127.0.0.1:9"):
        VllmServerPolicy(request_for("http://127.0.0.1:9"))
