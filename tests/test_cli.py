"""The command line: help that is true, exit codes, JSON, and every kind of terminal.

python tests/test_cli.py        writes the golden help pages again
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from stub import Stub, refuse

import whilesim as ws
from whilesim.chat.throttle import Throttle
from whilesim.chat.usage import Usage
from whilesim.cli import main
from whilesim.conversations import progress
from whilesim.doctor import examine, tell
from whilesim.refilling import reopen
from whilesim.shell import command, show

GOLDEN = Path(__file__).parent / "golden"
DEMO = Path(ws.__file__).parent / "demo"
GIVEN = ("--policy", str(DEMO / "policy.md"), "--tools", str(DEMO / "tools.json"))
SIGNS = "# Kundendienst – Zürich „Löwe“ 🦁\n\n- Prüfe die Identität, bevor du eine Bestellung stornierst → immer.\n"
PLAN = ("--situations", "2", "--tools", GIVEN[3], "--policy")
PUBLIC = (
    "plan simulate grade refill report export push label explain doctor eval gate compare floors serve tau2 train demo"
)


def walk(found: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(found, "commands", {}).items():
        yield from walk(inner, (*path, name))


PATHS = list(walk(main))


def help_of(path: tuple[str, ...], width: int = 100) -> str:
    done = CliRunner().invoke(main, [*path, "--help"], terminal_width=width, prog_name="whilesim")
    assert done.exit_code == 0
    return done.output


def golden(path: tuple[str, ...]) -> Path:
    return GOLDEN / f"help_{'_'.join(path) or 'whilesim'}.txt"


def shell(*words: str, **options: Any) -> Result:
    return CliRunner().invoke(main, list(words), **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small graded run, made by the commands; its policy holds signs that few code pages have."""
    folder = tmp_path_factory.mktemp("cli") / "run"
    policy = folder.with_name("policy.md")
    policy.write_text(f"{SIGNS}\n{(DEMO / 'policy.md').read_text(encoding='utf-8')}", encoding="utf-8")
    given = ("--policy", str(policy), "--tools", GIVEN[3], "--situations", "6", "--run-dir", str(folder))
    for words in (("simulate", *given), ("grade", str(folder))):
        done = shell(*words)
        assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_the_help_is_the_golden_one(path: tuple[str, ...]) -> None:
    told = golden(path).read_text(encoding="utf-8")
    assert help_of(path) == told
    assert told.isascii()  # help is printed before we can tell a code page to be patient


def test_there_is_no_golden_help_of_a_command_that_is_gone() -> None:
    assert {p.name for p in GOLDEN.glob("help_*")} == {golden(path).name for path in PATHS}


def test_every_command_that_was_promised_is_there_and_no_other() -> None:
    assert sorted(main.commands) == sorted(PUBLIC.split())
    assert sorted(main.commands["tau2"].commands) == ["compare", "floors", "read"]  # type: ignore[attr-defined]


def test_the_list_of_commands_is_in_order_and_cut_nowhere() -> None:
    told = help_of((), width=80)
    names = re.findall(r"^  (\w+)  +[A-Z].*$", told.partition("Commands:")[2], re.M)
    assert names == list(main.commands)
    assert "..." not in told.partition("Commands:")[2]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_the_example_of_a_help_fits_on_a_line_and_can_be_typed(path: tuple[str, ...], tmp_path: Path) -> None:
    found = re.search(r"^  Example: whilesim (.*)$", help_of(path, width=80), re.M)
    assert found is not None
    words = shlex.split(found.group(1))
    assert tuple(words[: len(path)]) == path or not path
    target: Any = main
    while isinstance(target, click.Group):
        target = target.commands[words.pop(0)]
    try:  # files of the example are not here; options, values and the number of arguments must fit
        target.make_context("x", words)
    except click.BadParameter as error:
        assert "does not exist" in error.message, error  # noqa: PT017  a file that is missing is no mistake in the example


@pytest.mark.parametrize("path", [p for p in PATHS if p and p != ("tau2",)], ids=" ".join)
def test_every_command_speaks_to_machines(path: tuple[str, ...]) -> None:
    assert re.search(r"^  --json +Print JSON for machines\.$", help_of(path), re.M)


def test_what_a_command_prints_as_json_is_json_in_ascii(run: Path, tmp_path: Path) -> None:
    labels = shell("label", str(run), "--json", input="k\nfine\nq\n")
    said = {
        "plan": shell("plan", *GIVEN, "--situations", "4", "--json"),
        "simulate": shell("simulate", *GIVEN, "--situations", "2", "--run-dir", str(tmp_path / "two"), "--json"),
        "grade": shell("grade", str(run), "--json"),
        "report": shell("report", str(run), "--out", str(tmp_path / "r.html"), "--json"),
        "export": shell("export", str(run), str(tmp_path / "t.jsonl"), "--json"),
        "explain": shell("explain", str(run), "s0001/r0", "--json"),
    }
    found = {name: json.loads(done.stdout) for name, done in said.items() if done.stdout.isascii()}
    assert {name for name, done in said.items() if done.exit_code} == set()
    assert len(found) == len(said)
    assert len(found["plan"]["cards"]) == 4
    assert found["simulate"]["unjudged"] == found["simulate"]["planned"] == 4
    assert found["export"]["lines"] == found["grade"]["kept"]
    assert found["explain"]["id"] == "s0001/r0"
    assert found["report"] == {"report": str(tmp_path / "r.html")}
    assert json.loads(labels.stdout)["labelled"] == 1


def test_refill_plays_more_of_a_run_that_a_shell_made(run: Path) -> None:
    before = len(ws.load(run).rows)
    done = shell("refill", str(run), "--rows", "5", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["planned"] == before + 5
    again = ws.load(run)
    assert len(again.rows) == again.ledger.planned == before + 5
    assert {row.wave for row in again.rows} == {0, 1}
    assert again.ledger.unjudged == 0


def test_a_function_in_a_file_plays_and_refills_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def agent(messages, tools):\n    return 'I am sorry, I cannot.'\n", encoding="utf-8")
    for words in (
        ("simulate", *GIVEN, "--situations", "2", "--agent", "mine.py:agent"),
        ("grade", "run"),
        ("refill", "run", "--rows", "1", "--agent", "mine.py:agent"),
    ):
        done = shell(*words)
        assert done.exit_code == 0, done.output
    assert {row.provenance.agent for row in ws.load("run").rows} == {"function:agent"}
    for more in ((), ("--base-url", "http://127.0.0.1:9/v1")):  # no server has a model of a function's name
        done = shell("refill", "run", *more)
        assert "the agent 'function:agent' was a function, and no folder holds one" in done.output


@pytest.mark.parametrize("words", [("grade",), ("explain", "s0001/r0"), ("report",), ("export", "x.jsonl")])
def test_a_run_in_which_no_conversation_ended_says_so(words: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("rows.jsonl", "log.jsonl"):
        (tmp_path / name).touch()
    done = shell(words[0], str(tmp_path), *words[1:])
    assert done.exit_code == 2
    assert "holds no rows: no conversation of a run has ended there" in done.output


def test_refill_asks_where_a_model_answered_that_has_only_left_its_name(run: Path) -> None:
    data = ws.load(run)
    played = {**data.manifest.fingerprint, "agent": {"name": "openai:a"}, "customer": {"name": "openai:b"}}
    manifest = data.manifest.model_copy(
        update={"fingerprint": played, "models": {"agent": "openai:a", "customer": "openai:b"}}
    )
    lost = ws.Simulation(data.rows, manifest, folder=run)
    with pytest.raises(ws.InputError, match=r"where the agent 'openai:a' answered is not written down.*--base-url"):
        reopen(lost)
    with pytest.raises(ws.InputError, match=r"where the customer 'openai:b' answered.*Type --customer"):
        reopen(lost, base_url="http://127.0.0.1:9/v1")


def test_refill_asks_who_read_the_rows_and_what_else_to_play(run: Path) -> None:
    data = ws.load(run)
    rows = [row.with_verdict(replace(row.verdict, judge="m@1a2b")) for row in data.rows if row.verdict]
    with pytest.raises(ws.InputError, match=r"were read by 'm'.*Type --judge"):
        reopen(ws.Simulation(rows, data.manifest, folder=run))
    with pytest.raises(ws.InputError, match=r"holds no plan\.json"):
        reopen(ws.Simulation(rows, data.manifest, folder=run / "elsewhere"), judge="m")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nonsense",), 2, "No such command"),
        (("plan", *GIVEN, "--situations", "many"), 2, "is no number"),
        (("plan", *GIVEN, "--balance", "7"), 2, "InputError"),
        (("plan", "--policy", GIVEN[3], *GIVEN[2:]), 2, "is the list of tools once more"),
        (("simulate", *GIVEN, "--agent", "nobody", *PLAN[:2]), 2, "names no provider"),
        (("simulate", *GIVEN, "--agent", "groq:llama-3", *PLAN[:2]), 2, "names neither a provider"),
        (("simulate", *GIVEN, "--agent", "a.py:f", "--base-url", "http://127.0.0.1:9"), 2, "Leave one out"),
        (("simulate", *GIVEN, "--rollouts", "0", *PLAN[:2]), 2, "leaves nothing to play"),
        (("grade", "nowhere"), 2, "does not exist"),
        (("grade", "{run}", "--base-url", "http://127.0.0.1:9/v1"), 2, "where the judge answers, and none is named"),
        (("refill", "{run}", "--rows", "-5"), 2, "leaves nothing to play"),
        (("explain", "{run}", "s9999/r9"), 2, "there is no row"),
        (("export", "{run}", f"{__file__}/t.jsonl"), 2, "Error"),
        (("export", "{run}", ""), 2, "names no file to write"),
        (("export", "{run}", "x.jsonl", "--format", "csv"), 2, "csv"),
        (("push", "{run}", "no-owner"), 2, "names no dataset"),
        (("eval",), 2, "no tickets were given"),
        (("eval", "no.jsonl", "--push", "nightly"), 2, "name no dataset and split"),
        (("serve", "--port", "99999"), 2, "0<=x<=65535"),
        (("eval", "--freeze", "p.json"), 2, "no tickets were given"),
        (("compare", "{run}"), 2, "two folders are needed"),
        (("doctor", "--agent", "nobody"), 2, "names no provider"),
        (("--version",), 0, ws.__version__),
    ],
)
def test_exit_codes(words: tuple[str, ...], code: int, said: str, run: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done = shell(*(word.format(run=run) if word == "{run}" else word for word in words))
    assert (done.exit_code, "Traceback" in done.output) == (code, False), done.output
    assert said in done.output


def test_python_runs_the_module_as_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "whilesim", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(ws.__version__)


def test_a_gate_that_fails_is_1_and_ctrl_c_is_neither() -> None:
    def raising(error: BaseException) -> Result:
        @click.command()
        @command
        def once(as_json: bool) -> None:
            raise error

        return CliRunner().invoke(once)

    codes = [
        raising(e).exit_code
        for e in (ws.GateFailed("below"), ws.InputError("bad"), OSError("full"), KeyboardInterrupt())
    ]
    assert codes == [1, 2, 2, 130]


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "cp932", "utf-8"])
def test_no_code_page_ends_a_command(encoding: str, run: Path, tmp_path: Path) -> None:
    """A sign that a code page lacks is shown as a question mark; JSON and files have them all."""
    runner = CliRunner(charset=encoding)
    told = {}
    for words in ("explain {} s0001/r0", "grade {}", "explain {} s0001/r0 --json", "plan --json"):
        given = [*words.split(" "), *PLAN, str(run.with_name("policy.md"))] if "plan" in words else words.split(" ")
        done = runner.invoke(main, [str(run) if word == "{}" else word for word in given])
        assert (done.exit_code, done.exception) == (0, None), words
        told[words] = done.stdout_bytes
    assert "„Löwe“ 🦁".encode(encoding, "replace") in told["explain {} s0001/r0"]
    for words in ("explain {} s0001/r0 --json", "plan --json"):
        assert "\U0001f981" in json.dumps(json.loads(told[words]), ensure_ascii=False)


def test_in_a_pipe_with_a_code_page_of_windows_everything_comes_to_its_end(run: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom whilesim.cli import main\nfor words in sys.argv[1].split('|'):\n"
        "    try:\n        main(words.split(' '))\n    except SystemExit as end:\n        assert not end.code, words\n"
    )
    given = f"--policy {run.with_name('policy.md')} --tools {GIVEN[3]} --situations 2"
    jobs = [f"simulate {given} --run-dir r", "grade r", "report r --out r.html", "--help", f"explain {run} s0001/r0"]
    quiet = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "CI": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, "|".join(jobs)],
        cwd=tmp_path,
        env={**os.environ, **quiet, "PYTHONIOENCODING": "cp437"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Zürich ?Löwe? ?".encode("cp437") in done.stdout
    assert b"\x1b" not in done.stdout


def test_json_is_whole_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"é": "🦁 \u2028 \ud800 \\u00e9", "n": 2**70, "x": 0.1}
    show(value, "", as_json=True)
    said = capsys.readouterr().out
    assert said.isascii()
    assert json.loads(said) == value


class TestDoctor:
    @pytest.fixture(autouse=True)
    def bare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HF_TOKEN", "VLLM_BASE_URL", "VLLM_API_KEY", "OLLAMA_HOST"):
            monkeypatch.delenv(name, raising=False)

    def test_it_says_what_is_installed_and_how_to_get_what_is_not(self) -> None:
        found = examine()
        assert found["packages"]["click"]["version"] == version("click")
        assert {found["packages"][name]["extra"] for name in ("ray", "torch")} == {"ray", "train"}
        assert 'pip install "whilesim[ray]"' in tell({**found, "packages": {"ray": {"version": "", "extra": "ray"}}})
        assert found["models"] == []
        assert "none is known" in tell(found)

    def test_it_asks_a_model_once_and_says_what_it_costs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Stub(key="sk-right-key") as stub:
            monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-right-key")
            done = shell("doctor", "--agent", "openai:gpt-4.1-mini", "--json")
            (body,) = stub.bodies
            found = json.loads(done.stdout)
            assert found["keys"]["OPENAI_API_KEY"] is True
            assert (done.exit_code, found["models"][0]["answers"], body["max_tokens"]) == (0, True, 16)
            assert found["models"][0]["price"] == [0.4, 1.6]
            monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
            done = shell("doctor", "--agent", "openai:gpt-4.1-mini")
            assert done.exit_code == 2
            assert "does not answer (auth)" in done.output
            assert "sk-wrong-key" not in done.output
            assert stub.count == 2

    def test_it_asks_the_endpoints_that_the_environment_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Stub(plan=[refuse(404, "The model `any` does not exist.")]) as stub:
            monkeypatch.setenv("VLLM_BASE_URL", stub.url)
            monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
            done = shell("doctor")
        assert done.exit_code == 0
        told = " ".join(done.output.split())
        assert re.search(r"vllm:any at 127\.0\.0\.1:\d+ is there, and takes the key", told)
        assert re.search(r"ollama:any at 127\.0\.0\.1:1 does not answer \(connection\)", told)
        assert stub.count == 1


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestProgress:
    @pytest.fixture(autouse=True)
    def at_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CI", raising=False)
        monkeypatch.setattr(progress, "_EVERY", 0.0)

    def told(self, error: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, calls: int = 0, **options: Any) -> str:
        monkeypatch.setattr(sys, "stderr", error)
        throttle = Throttle()
        throttle.used = Usage(calls=calls, tokens_in=1200 * calls, usd=None if calls else 0.0)
        bar = progress.Progress(4, **options)
        for rows in (0, 2, 4):
            bar.update(rows, rows, throttle)
        bar.close()
        return error.getvalue()

    def test_a_terminal_shows_a_bar_that_ends_full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told = self.told(Screen(), monkeypatch, calls=10)
        assert "4/4" in told.rpartition("\r")[2]
        assert "4 clean" in told
        assert "12,000 tokens, price unknown" in told

    def test_scripts_make_no_calls_to_tell_of(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told = self.told(Screen(), monkeypatch)
        assert "4 clean" in told
        assert "calls/s" not in told

    def test_a_pipe_gets_lines_and_no_guess_before_the_first_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, *others = self.told(io.StringIO(), monkeypatch).splitlines()
        assert first == "whilesim: 0/4 rows, 0 clean"
        assert others[0] == "whilesim: 2/4 rows, 2 clean, about 0 min left"

    def test_under_ci_nothing_is_shown_unless_it_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "1")
        assert self.told(io.StringIO(), monkeypatch) == self.told(Screen(), monkeypatch) == ""
        assert "4/4" in self.told(Screen(), monkeypatch, show=True)


def test_a_saved_plan_is_played_as_it_stands(tmp_path: Path) -> None:
    plan, run = tmp_path / "plan.json", tmp_path / "run"
    assert shell("plan", *GIVEN, "--situations", "4", "--seed", "3", "--save", str(plan)).exit_code == 0
    done = shell("simulate", "--plan", str(plan), "--rollouts", "1", "--run-dir", str(run), "--json")
    assert json.loads(done.stdout)["planned"] == 4
    assert (run / "plan.json").read_bytes() == plan.read_bytes()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--seed", "0", "--plan", "plan.json"), "decides what --seed would"),
        ((*GIVEN, "--plan", "plan.json"), "decides what --policy, --tools would"),
        (GIVEN[:2], "--tools is missing: a plan needs both files"),
        ((*GIVEN, "--situations", "²"), "Type a number from 1, or: --situations all"),
    ],
)
def test_a_plan_and_what_it_is_made_of_are_not_mixed(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text("{}", encoding="utf-8")
    done = shell("simulate", *words)
    assert done.exit_code == 2
    assert told in done.output
    assert not Path("run").exists()


def test_tools_may_lie_in_several_files(tmp_path: Path) -> None:
    tools, policy = json.loads((DEMO / "tools.json").read_text(encoding="utf-8")), str(DEMO / "policy.md")
    (tmp_path / "some.json").write_text(json.dumps(tools[:4]), encoding="utf-8")
    (tmp_path / "more.py").write_text(
        'def close_line(line_id: str) -> None:\n    """Close a line."""\n', encoding="utf-8"
    )
    given = ("--tools", str(tmp_path / "some.json"), "--tools", str(tmp_path / "more.py"))
    done = shell("plan", "--policy", policy, *given, "--situations", "2")
    assert (done.exit_code, " x 5 tool x " in done.output) == (0, True), done.output


if __name__ == "__main__":
    for place in PATHS:
        golden(place).write_text(help_of(place), encoding="utf-8")
