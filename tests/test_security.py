"""Security and privacy: keys are seen nowhere, data are never run or followed, people are invented.

The keys here are planted, servers repeat them in every way that servers have, and then each byte
that was written or said is searched.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import io
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest
from domains import domains
from fake_hub import FakeHub
from stub import Fault, Stub, refuse, say_raw

import whilesim as ws
from whilesim.chat.endpoint import Endpoint
from whilesim.chat.messages import Failure, Message
from whilesim.chat.throttle import Throttle
from whilesim.core.keys import hide, known_keys, place_of, scrub
from whilesim.evals.results import EvalResult
from whilesim.evals.serve import serving
from whilesim.evals.tickets import Tickets
from whilesim.showcase import demo_policy, demo_tools

PACKAGE = Path(ws.__file__).parent
KEYS = {
    "OPENAI_API_KEY": "sk-planted/0penA1+1111",
    "HF_TOKEN": "hf_plantedhub2222",
    "GROQ_API_KEY": "gsk_planted3333",
    "QUERY": "planted-query-4444",
    "HEADER": "planted-header-5555",
    "PASSWORD": "planted-password-6666",
    "MINE": "planted-mine-7777",
}
SECRETS = [k.encode() for k in KEYS.values()]


class Parrot(Stub):
    """Repeats the keys that it was sent: in refusals, in errors, in what is no answer, in answers."""

    kind = "answer"
    in_address: tuple[str, ...] = ()
    """What it was sent beside headers."""

    def fault(self, number: int, body: dict[str, Any], headers: Mapping[str, str]) -> Fault | None:
        told = " ".join([*(v for n, v in headers.items() if n in ("authorization", "x-api-key")), *self.in_address])
        if self.kind == "answer":
            return say_raw(self.complete({**body, "tools": []}, 9).decode().replace("This is", f"{told} is"))
        if self.kind == "cut":  # the key stands where a long text is cut
            return refuse(401, f"{'x' * 200} {told} " * 3)
        if self.kind.isdigit():
            return refuse(int(self.kind), f"Incorrect API key provided: {told}")
        return say_raw(told if self.kind == "garbage" else json.dumps({"error": {"message": told}, "headers": told}))


def models(url: str) -> dict[str, ws.Model]:
    host = url.removeprefix("http://")
    client = openai.AsyncOpenAI(base_url=url, api_key=KEYS["MINE"], default_headers={"X-Api-Key": KEYS["HEADER"]})
    return {
        "environment": ws.Model("openai:gpt-4.1-mini", base_url=url),
        "argument": ws.Model("hf:org/model", base_url=url, api_key=KEYS["MINE"]),
        "query": ws.Model("m", base_url=f"{url}?api_key={KEYS['QUERY']}&api-version=2024-10-21"),
        "password": ws.Model("m", base_url=f"http://me:{KEYS['PASSWORD']}@{host}"),
        "client": ws.Model("m", client=client),
        "litellm": ws.Model("litellm:groq/llama-3.3-70b-versatile", base_url=url),
    }


async def ask(model: ws.Model) -> str:
    endpoint = Endpoint(model, throttle=Throttle(retry_for=0.0))
    try:
        return repr(await endpoint.reply([Message(role="user", content="Hello")]))
    finally:
        await endpoint.close()
        if model.client is not None:
            await model.client.close()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name if name.endswith(("_KEY", "_TOKEN")) else f"MY_{name}_KEY", key)


@pytest.fixture(scope="module")
def parrot() -> Iterator[Parrot]:
    with Parrot() as stub:
        yield stub


@pytest.mark.parametrize("kind", ["401", "400", "500", "429", "cut", "garbage", "error", "answer"])
@pytest.mark.parametrize("which", ["environment", "argument", "query", "password", "client", "litellm"])
def test_no_answer_of_an_endpoint_brings_a_key_back(
    which: str, kind: str, parrot: Parrot, planted: None, caplog: pytest.LogCaptureFixture
) -> None:
    parrot.kind, asked = kind, parrot.count
    parrot.in_address = (KEYS[which.upper()],) if which in ("query", "password") else ()
    model = models(parrot.url)[which]

    with caplog.at_level(logging.DEBUG, "whilesim"):
        try:
            said = asyncio.run(ask(model))
        except ws.ModelError as error:
            said = "".join(traceback.format_exception(error))
        said += repr(model) + json.dumps(model.fingerprint) + caplog.text
    assert parrot.count > asked
    assert [key for key in KEYS.values() if key in said] == []


def test_a_key_in_the_address_is_sent(planted: None) -> None:
    """A gateway's key or version in the query goes on being there once the path is longer."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.send_response(401)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()

    with pytest.raises(ws.ModelError):
        asyncio.run(ask(models(f"http://127.0.0.1:{server.server_port}/v1")["query"]))
    server.server_close()
    assert seen == [f"/v1/chat/completions?api_key={KEYS['QUERY']}&api-version=2024-10-21"]


def test_nobody_there_is_said_without_the_address_key(planted: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        for which in ("query", "password"):
            with pytest.raises(ws.ModelError, match=r"'m' at 127\.0\.0\.1") as caught:
                asyncio.run(ask(models(url)[which]))
            said = "".join(traceback.format_exception(caught.value))
            assert [key for key in KEYS.values() if key in said] == []


def test_an_agent_behind_an_address_fails_without_its_key() -> None:
    ticket = {"ticket_id": "t1", "user_message": "Hello"}
    options = ws.EvalOptions(progress=False, floors=False)
    for url in (f"http://127.0.0.1:1/chat?token={KEYS['QUERY']}", f"http://u:{KEYS['PASSWORD']}@127.0.0.1:1/chat"):
        result = ws.evaluate(url, [ticket], options=options)
        told = f"{result} {result.traces} {result.run}"
        assert "http://127.0.0.1:1/chat did not answer" in told
        assert [key for key in KEYS.values() if key in told] == []


def test_an_address_that_is_none_is_said_without_its_key() -> None:
    with pytest.raises(ws.InputError, match="is no URL") as caught:
        Endpoint(ws.Model("m", base_url=f"htp://h/v1?api_key={KEYS['QUERY']}"))
    assert KEYS["QUERY"] not in str(caught.value)


def test_what_a_function_of_the_users_raises_stands_in_the_row_without_keys(planted: None, tmp_path: Path) -> None:
    def agent(messages: Any) -> str:
        raise RuntimeError(f"401 Incorrect API key provided: {os.environ['OPENAI_API_KEY']}")

    data = ws.simulate(
        agent, tools=demo_tools(), system_prompt=demo_policy(), situations=1, run_dir=tmp_path, progress=False
    )
    assert "Incorrect API key provided: ***" in data.rows[0].failure.message
    assert found_in(tmp_path) == []
    assert KEYS["MINE"] not in Failure(role="agent", reason="player", message=KEYS["MINE"]).message


def test_headers_and_keys_among_a_models_fields_are_in_no_manifest(tmp_path: Path) -> None:
    extra = {"extra_headers": {"Authorization": f"Bearer {KEYS['HEADER']}"}, "api_key": KEYS["MINE"], "top_p": 0.9}
    with Stub() as stub:
        model = ws.Model("m", base_url=stub.url, extra=extra)
        ws.simulate(
            model,
            tools=demo_tools(),
            system_prompt=demo_policy(),
            situations=1,
            rollouts=1,
            run_dir=tmp_path,
            progress=False,
        )
    assert "top_p" in (tmp_path / "manifest.json").read_text(encoding="utf-8")
    assert found_in(tmp_path) == []


def test_keys_are_known_by_where_they_stand_and_what_they_look_like() -> None:
    assert known_keys("EMPTY", None, "ollama") == ()
    url = "https://u:pass%2Fword1@h/v1?api-version=2024-10-21&sig=x&subscription-key=abc%2Bdefgh"
    assert set(known_keys(url=url)) == {
        "pass%2Fword1", "pass/word1", "dTpwYXNzL3dvcmQx", "abc%2Bdefgh", "abc+defgh",
    }  # fmt: skip
    assert place_of(url) == "https://h/v1"
    assert known_keys(named={"PATH": "/usr/local/bin", "MY_TOKEN": "abcdefgh", "MAX_TOKENS": "123456789"}) == (
        "abcdefgh",
    )
    assert hide("a abcdefgh b", ("abcdefgh",)) == "a *** b"
    assert scrub({"llm": {"api_key": "x"}, "said": "Bearer abcdefghijk", "n": 1}) == {
        "llm": {"api_key": "***"}, "said": "***", "n": 1,
    }  # fmt: skip


def found_in(folder: Path) -> list[str]:
    """The files under a folder whose bytes, names or tables hold a planted key."""
    files = [p for p in folder.rglob("*") if p.is_file()]
    return [str(p) for p in files if any(key in p.read_bytes() or key in str(p).encode() for key in SECRETS)]


STREET = """
import contextlib, io, logging, os, sys, traceback, warnings
sys.path.insert(0, sys.argv[1])
url = sys.argv[2]
logging.basicConfig(level=logging.DEBUG, filename="log.txt")
logging.getLogger("asyncio").setLevel(logging.INFO)
from click.testing import CliRunner
import whilesim as ws
from whilesim.cli import main
from whilesim.showcase import demo_policy, demo_tools
from pathlib import Path
from shop import ticket
from whilesim.core.jsontext import dumps

def shell(*words):
    done = CliRunner().invoke(main, words)
    print(words[0], done.exit_code, done.output, done.exception)
    return done

for path, text in (("policy.md", demo_policy()), ("tools.json", dumps(demo_tools())), ("tickets.jsonl", dumps(ticket()))):
    Path(path).write_text(text, encoding="utf-8")
GIVEN = "--policy", "policy.md", "--tools", "tools.json"
address = f"{url}?api_key={os.environ['MY_QUERY_KEY']}"
for name, model in {"mine": ws.Model("m", base_url=address, api_key=os.environ["MY_MINE_KEY"])}.items():
    plan = ws.plan(tools=demo_tools(), system_prompt=demo_policy(), situations=2, writer=model)
    plan.save(f"{name}.plan.json")
    data = ws.simulate(model, plan=plan, rollouts=1, run_dir=name, progress=True)
    data.grade(judge=model)
    print(data, data.ledger, data.pass_at, data.certificate, data.explain(data.rows[0].id), plan.estimate(agent=model))
    data.save(f"{name}.saved"), data.report(f"{name}.html"), data.dropped.export(f"{name}.jsonl"), data._repr_html_()
    print(data.push_to_hub(f"you/{name}"))
    result = ws.evaluate(model, [ticket(1)], judge=model, options=ws.EvalOptions(run_dir=f"{name}.eval", progress=False))
    print(result, result.push_to_hub(f"you/{name}-results"))
    try:
        ws.gate(result)
    except ws.GateFailed as error:
        traceback.print_exception(error)
shell("simulate", *GIVEN, "--agent", "m", "--base-url", address, "--situations", "1", "--run-dir", "shell")
shell("simulate", *GIVEN, "--agent", "openai:gpt-4.1-mini", "--situations", "1", "--run-dir", "shell2", "--json")
shell("grade", "shell2", "--judge", "openai:gpt-4.1")
shell("refill", "shell2", "--rows", "1", "--judge", "openai:gpt-4.1")
shell("report", "shell2", "--out", "shell.html")
shell("explain", "shell2", "s0001/r0")
shell("push", "mine", "you/shell")
shell("doctor", "--agent", "openai:gpt-4.1-mini", "--base-url", address)
shell("eval", "--agent", "openai:gpt-4.1-mini", "tickets.jsonl", "--no-floors", "--run-dir", "shell.eval")
print("all done")
"""


@pytest.mark.chaos
def test_no_key_is_in_any_byte_that_a_whole_run_leaves(tmp_path: Path, planted: None) -> None:
    """Plan, simulate, grade, save, report, push, evaluate and gate; as a library and from a shell."""
    work = tmp_path / "work"
    work.mkdir()
    with FakeHub() as hub, Parrot() as stub:
        env = {**os.environ, **hub.env(tmp_path / "home"), **KEYS, "OPENAI_BASE_URL": stub.url}
        command = [sys.executable, "-c", STREET, str(Path(__file__).parent), stub.url]
        done = subprocess.run(command, cwd=work, env=env, capture_output=True, check=False, timeout=300)
        said = done.stdout + done.stderr
        assert b"all done" in done.stdout, said[-3000:].decode()
        assert all(repo.private for repo in hub.repos.values())
        pushed = [data for repo in hub.repos.values() for _, files, _ in repo.commits for data in files.values()]
        pushed += hub.lfs.values()
    assert stub.count > 30
    assert len(pushed) > 6
    assert (work / "shell2" / "replies.sqlite").exists()
    leaks = [key for key in SECRETS if key in said or any(key in data for data in pushed)]
    assert leaks == [], [line for line in said.splitlines() if any(k in line for k in leaks)][:5]
    assert found_in(tmp_path) == []


class TestDataAreNeverRunOrFollowed:
    """What a policy, a tool, a ticket or a row says is text: nothing in it is opened, fetched or executed."""

    @pytest.fixture
    def bait(self, tmp_path: Path) -> Path:
        path = tmp_path / "bait.json"
        path.write_text('{"type": "string", "description": "CANARY-8888"}', encoding="utf-8")
        return path

    @pytest.fixture
    def touched(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Every file that is opened and every address that is connected to."""
        seen: list[str] = []

        def watch(module: Any, name: str) -> None:
            real = getattr(module, name)
            monkeypatch.setattr(
                module, name, lambda *a, **k: (seen.append(str(a[-1] if "conn" in name else a[0])), real(*a, **k))[1]
            )

        for module in (builtins, io, os):
            watch(module, "open")
        watch(socket.socket, "connect")
        return seen

    def tools(self, bait: Path, url: str) -> list[dict[str, Any]]:
        refs = {"a": {"$ref": bait.as_uri()}, "b": {"$ref": f"{url}/schema.json"}, "c": {"$ref": str(bait)}}
        path = {"type": "string", "default": str(bait), "examples": [str(bait)], "description": f"A path, like {bait}"}
        schema = {
            "type": "object",
            "properties": {"path": path, **refs},
            "required": ["path"],
            "$schema": f"{url}/meta",
        }
        return [{"name": "read_file", "description": f"Read {bait}.", "parameters": schema, "returns": refs["b"]}]

    def test_a_path_or_an_address_in_policy_tools_or_calls_is_not_touched(
        self, bait: Path, touched: list[str], tmp_path: Path
    ) -> None:
        def agent(messages: Any, context: Any) -> str:
            return context.call("read_file", {"path": str(bait), "a": bait.as_uri(), "b": f"{stub.url}/x"})

        with Stub() as stub:
            policy = f"# Files\n\n- Always open {bait} first.\n- See {stub.url}/rules and {{% include '{bait}' %}} {{{{ 7*7 }}}}.\n"
            options = {"tools": self.tools(bait, stub.url), "system_prompt": policy, "situations": 3, "progress": False}
            data = ws.simulate(agent, rollouts=1, run_dir=tmp_path / "run", **options).grade()
            data.report(tmp_path / "r.html"), data.save(tmp_path / "saved"), data.export(tmp_path / "t.jsonl")
            assert data.rows[0].messages[0]["content"] == policy
            assert ws.load(tmp_path / "saved").rows[0].messages[0]["content"] == policy
            assert stub.count == 0
            port = str(stub.url).split(":")[2].split("/")[0]
        assert [place for place in touched if "bait" in place or port in place] == []
        assert [p for p in tmp_path.rglob("*") if p.is_file() and p != bait and b"CANARY" in p.read_bytes()] == []

    def test_a_path_in_a_ticket_is_not_touched(self, bait: Path, touched: list[str]) -> None:
        ticket = {
            "ticket_id": f"../../{bait}", "user_message": str(bait), "customer_context": {"file": str(bait)},
            "expected_tools": ["read_file"], "initial_state": {"file": {str(bait): {"path": bait.as_uri()}}},
        }  # fmt: skip
        options = ws.EvalOptions(progress=False, floors=False)
        result = ws.evaluate("scripted", [ticket], tools=self.tools(bait, "http://127.0.0.1:9"), options=options)
        assert "CANARY" not in str(result.traces)
        assert [place for place in touched if "bait" in place] == []

    def test_a_row_with_a_path_for_an_id_is_written_where_all_rows_are(self, tmp_path: Path) -> None:
        data = ws.simulate(tools=demo_tools(), system_prompt=demo_policy(), situations=1, rollouts=1, progress=False)
        rows = [data.rows[0].model_copy(update={"id": "../../../evil/r0", "situation_id": "/evil"})]
        inside = tmp_path / "inside"
        ws.Simulation(rows, data.manifest).grade().save(inside)
        again = ws.load(inside)
        again.report(inside / "r.html"), again.explain("../../../evil/r0")
        assert [p.name for p in tmp_path.iterdir()] == ["inside"]

    def test_yaml_makes_no_objects(self, tmp_path: Path) -> None:
        spec, evil = tmp_path / "w.yaml", tmp_path / "ran"
        spec.write_text(f"records: !!python/object/apply:os.mkdir ['{evil.as_posix()}']\n", encoding="utf-8")
        with pytest.raises(ws.InputError, match="is not YAML"):
            ws.WorldSpec.from_yaml(spec)
        with pytest.raises(ws.InputError, match="is neither JSON"):
            ws.plan(tools=spec, system_prompt="Be kind.")
        assert not evil.exists()

    def test_tools_in_python_are_read_and_not_run(self, tmp_path: Path) -> None:
        source, evil = tmp_path / "t.py", tmp_path / "ran"
        lines = f"import os\nos.mkdir({str(evil)!r})\n\ndef find_order(order_id: str = str(os.mkdir({str(evil)!r}))) -> str:\n"
        source.write_text(f'{lines}    """Find an order."""\n    return os.getcwd()\n', encoding="utf-8")
        assert [t.name for t in ws.plan(tools=source, system_prompt="Be kind.", situations=1).tools] == ["find_order"]
        assert not evil.exists()


FORBIDDEN = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "system",
    "popen",
    "load_module",
    "pickle",
    "marshal",
    "shelve",
    "dill",
}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_nothing_in_the_package_unpickles_evaluates_or_asks_a_shell(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {a.name.split(".")[0] for a in node.names} | {(getattr(node, "module", None) or "").split(".")[0]}
            found |= names & FORBIDDEN
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            on = ast.unparse(node.func)
            given = {k.arg: ast.unparse(k.value) for k in node.keywords}
            unsafe = {
                "shell": "True",
                "trust_remote_code": "True",
                "allow_pickle": "True",
                "verify": "False",
                "ssl": "False",
            }
            found |= {name for name, value in unsafe.items() if given.get(name) == value}
            found |= {on} if called in FORBIDDEN and on != "re.compile" else set()
            found |= (
                {on} if on in ("yaml.load", "yaml.unsafe_load", "torch.load") and path.stem != "templates" else set()
            )
    assert found == set()


def test_serve_listens_on_loopback_alone() -> None:
    async def look() -> str:
        async with serving({}) as url:
            port = int(url.split(":")[2].split("/")[0])
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            with pytest.raises(OSError, match=r"refused|unreachable|assign"):  # a server on all addresses would answer
                socket.create_connection(("127.0.0.2", port), timeout=5).close()
            return url

    assert asyncio.run(look()).startswith("http://127.0.0.1:")


@pytest.mark.parametrize("push", [ws.Simulation.push_to_hub, Tickets.push_to_hub, EvalResult.push_to_hub])
def test_what_is_pushed_is_private_unless_told(push: Any) -> None:
    assert inspect.signature(push).parameters["private"].default is True


@pytest.mark.parametrize("name", ["demo", pytest.param("telecom", marks=pytest.mark.corpus)])
def test_the_people_of_the_world_are_invented(name: str, request: pytest.FixtureRequest) -> None:
    """E-mails at example.com; telephones with the area code 555, which nobody has, or imitating an example given."""
    if name != "demo":
        request.getfixturevalue("shared")
    policy, tools = next((p, t) for n, p, t in domains() if n == name)
    data = ws.simulate(tools=tools, system_prompt=policy, situations=6, rollouts=1, progress=False)
    told = json.dumps([[row.messages[1:], row.final_state] for row in data.rows])
    mails = set(re.findall(r"[\w.+-]+@[\w-]+(?:\.\w+)+", told))
    assert len(mails) > 5
    assert {mail.partition("@")[2] for mail in mails} <= {"example.com"}
    phones = set(re.findall(r"(?<![\w-])\d{3}-\d{3}-\d{4}(?![\w-])", told))
    assert {phone[:3] for phone in phones} <= {"555"}
