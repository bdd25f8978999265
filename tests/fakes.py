"""Stand-ins for what is slow or big: a language model of 20,000 weights, a world of one number.

`tests.fakes:Counter-v0` is a registered environment, as a user of proxmo would bring one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from proxmo.agents.base import Decision, Situation
from proxmo.config import (
    CheckpointConfig,
    Config,
    CreditConfig,
    EnvConfig,
    EvalConfig,
    ModelConfig,
    OptimConfig,
    PromptConfig,
    RolloutConfig,
    SamplingConfig,
)
from proxmo.policies.base import Response
from proxmo_envs import TaskSet, TextSpace

COUNTER = "tests.fakes:Counter-v0"
# Few tokens, so that a model that has learnt nothing ends its response often enough to act at all.
ALPHABET = "0123456789udnowt "
SPECIAL = ("<pad>", "<user>", "<agent>", "<end>", "<unk>")
TEMPLATE = (
    "{% for m in messages %}<user>{{ m['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<agent>{% endif %}"
)


def tiny_tokenizer() -> Any:
    """One token per letter; what is not in the alphabet becomes <unk>."""
    from transformers import Qwen2Tokenizer

    # The byte-level form of a blank is "\u0120".
    letters = dict.fromkeys(ALPHABET.replace(" ", "\u0120"))
    return Qwen2Tokenizer(
        vocab={token: i for i, token in enumerate([*SPECIAL, *letters])},
        merges=[],
        unk_token="<unk>",
        eos_token="<end>",
        pad_token="<pad>",
        additional_special_tokens=["<user>", "<agent>"],
        chat_template=TEMPLATE,
    )


def tiny_model(seed: int = 0) -> Any:
    """A random Qwen2 model of about 20,000 parameters whose responses depend on the prompt."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = tiny_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.15,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config).eval()


def dropout_model() -> Any:
    """Learned absolute positions and dropout: wrong positions or a training mode show at once."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = tiny_tokenizer()
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=128,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT2LMHeadModel(config)


def save_tiny_model(path: Path, seed: int = 0) -> Path:
    """Writes model and tokenizer as a Hugging Face directory."""
    tiny_model(seed).save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


class CounterEnv(gymnasium.Env[str, str]):
    """A number to be moved to another: every "u" of an action counts up, every "d" down.

    The start is the task's number plus a random one of the environment's own generator, which the
    seed of `reset` decides. `broken` tasks raise at the step `broken_at`.
    """

    def __init__(
        self,
        split: str = "train",
        data: str | None = None,
        tasks: int = 5,
        free: bool = True,
        broken: Sequence[str] = (),
        broken_at: int = 3,
        expert_action: bool = False,
    ) -> None:
        self.observation_space = TextSpace()
        self.action_space = TextSpace()
        self.free = free
        self.broken = broken
        self.broken_at = broken_at
        self.expert_action = expert_action

    @classmethod
    def task_set(
        cls, split: str = "train", data: str | None = None, tasks: int = 5, **_: Any
    ) -> TaskSet:
        ids = [f"{split}-{number}" for number in range(tasks)]
        return TaskSet("Counter-v0", split, ids, content_hash=str)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.task_id = (options or {})["task_id"]
        self.number = int(self.task_id.rpartition("-")[2]) + int(self.np_random.integers(4))
        self.target = self.number + 1
        self.steps = 0
        return self._seen(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.task_id in self.broken and self.steps == self.broken_at:
            raise ConnectionError("the world fell apart")
        self.number += action.count("u") - action.count("d")
        won, lost = self.number == self.target, self.number < 0
        return self._seen(), float(won), won or lost, False, self._info(won)

    def _seen(self) -> str:
        return f"now {self.number}"

    def _info(self, won: bool = False) -> dict[str, Any]:
        info = {
            "task": f"to {self.target}",
            "task_id": self.task_id,
            "task_type": "even" if self.task_id[-1] in "02468" else "odd",
            "admissible_actions": [] if self.free else ["up", "down", "stay"],
            "won": won,
            "score": float(won),
        }
        if self.expert_action:
            info["expert_action"] = "up" if self.number < self.target else "down"
        return info


gymnasium.register(id="Counter-v0", entry_point=CounterEnv, max_episode_steps=5)


def counter_config(model: Path | str, **changes: Any) -> Config:
    """A run of a few seconds that learns something in every iteration."""
    sections: dict[str, Any] = {
        "seed": 5,
        "env": EnvConfig(id=COUNTER),
        "model": ModelConfig(name=str(model), device="cpu"),
        "prompt": PromptConfig(style="terse", history=1, max_prompt_tokens=200),
        "sampling": SamplingConfig(max_new_tokens=10),
        "rollout": RolloutConfig(tasks=2, group_size=4),
        "credit": CreditConfig(method="grpo"),
        "optim": OptimConfig(iterations=6, lr=1e-2, kl_coef=0.0),
        "eval": EvalConfig(episodes=2),
        "checkpoint": CheckpointConfig(every=1, keep=2),
    }
    return Config(**{**sections, **changes})


class ScriptedAgent:
    """Acts by a function of the situation; remembers the seeds and the sizes it was asked with."""

    def __init__(self, decide: Callable[[Situation], Decision | str]) -> None:
        self.decide = decide
        self.seeds: list[tuple[int, ...]] = []
        self.asked: list[int] = []

    def act(self, situations: Sequence[Situation], *, seed: Sequence[int]) -> list[Decision]:
        self.seeds.append(tuple(seed))
        self.asked.append(len(situations))
        decided = [self.decide(one) for one in situations]
        return [Decision(one, response=one) if isinstance(one, str) else one for one in decided]


class ScriptedPolicy:
    """Says given texts, one per prompt, whatever the prompt; remembers what it was asked."""

    def __init__(self, texts: Iterable[str | tuple[str, str]]) -> None:
        self.tokenizer = tiny_tokenizer()
        self.texts = list(texts)
        self.asked: list[dict[str, Any]] = []

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        temperature: float,
        max_new_tokens: int,
        seed: Sequence[int],
        seeds: Sequence[Sequence[int]] | None = None,
    ) -> list[Response]:
        asked = {"temperature": temperature, "max_new_tokens": max_new_tokens, "seed": tuple(seed)}
        self.asked.append({"prompts": [list(one) for one in prompts], **asked})
        responses = []
        for _ in prompts:
            said = self.texts.pop(0)
            text, reason = said if isinstance(said, tuple) else (said, "stop")
            responses.append(Response((7, 3), (-0.5, -0.25), text, reason, weight_version=9))
        return responses


class GivenPool:
    """Hands out given environments in order; remembers what came back."""

    def __init__(self, envs: Iterable[Any]) -> None:
        self.envs = list(envs)
        self.returned: list[Any] = []

    def take(self) -> Any:
        return self.envs.pop(0)

    def give_back(self, env: Any) -> None:
        self.returned.append(env)


@dataclass(frozen=True)
class Answer:
    """What the stub of an API sends: a completion, or `body` as it is, a byte per `trickle_s`.

    With `breaks_off` the connection ends a byte before the body does.
    """

    text: str | None = None
    status: int = 200
    finish_reason: str = "stop"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    breaks_off: bool = False
    trickle_s: float = 0.0
    delay_s: float = 0.0

    def payload(self, asked: Mapping[str, Any]) -> bytes:
        """The body: tokens are counted as words."""
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": f"stub says {self.status}"}}).encode()
        message = {"role": "assistant", "content": self.text}
        words = len(asked["messages"][-1]["content"].split()), len((self.text or "").split())
        usage = {
            "prompt_tokens": words[0],
            "completion_tokens": words[1],
            "total_tokens": sum(words),
        }
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        kind = {"id": "stub", "object": "chat.completion", "created": 0, "model": asked["model"]}
        return json.dumps({**kind, "choices": [choice], "usage": usage}).encode()


class StubApi:
    """What an OpenAI-compatible server was asked, and how many requests it had at once."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.keys: list[str | None] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.lock = threading.Lock()

    @property
    def prompts(self) -> list[str]:
        return [one["messages"][-1]["content"] for one in self.requests]


@contextmanager
def stub_api(answer: Callable[[str, int], Answer | str]) -> Iterator[StubApi]:
    """Serves chat completions; `answer` gets the user's message and the number of the request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with api.lock:
                api.requests.append(asked)
                api.times.append(time.monotonic())
                api.keys.append(self.headers["Authorization"])
                number = len(api.requests)
                api.in_flight += 1
                api.most_in_flight = max(api.most_in_flight, api.in_flight)
            given = answer(asked["messages"][-1]["content"], number)
            try:
                self._send(given if isinstance(given, Answer) else Answer(given), asked)
            except OSError:  # the client lost patience, as it should
                self.close_connection = True
            finally:
                with api.lock:
                    api.in_flight -= 1

        def _send(self, given: Answer, asked: dict[str, Any]) -> None:
            time.sleep(given.delay_s)
            body = given.payload(asked)
            self.send_response(given.status)
            length = len(body) + given.breaks_off
            headers = {"Content-Type": "application/json", "Content-Length": str(length)}
            self.close_connection |= given.breaks_off
            for name, value in {**headers, **given.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for byte in body if given.trickle_s else ():
                self.wfile.write(bytes([byte]))
                time.sleep(given.trickle_s)
            self.wfile.write(b"" if given.trickle_s else body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api = StubApi(f"http://127.0.0.1:{server.server_port}/v1")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()


def rng(seed: int = 0) -> np.random.Generator:
    """A generator of the test's own."""
    return np.random.default_rng(seed)
