"""Command line: the same job from a shell.

Every command prints a table for people, or JSON with ``--json``, and ends with 0, with 1
when a gate failed, or with 2 when the input cannot be used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from whilesim import __version__
from whilesim.core.errors import InputError
from whilesim.evals.commands import COMMANDS
from whilesim.shell import FILE, FOLDER, NEW, Commands, command, read_policy, show, speak_plainly
from whilesim.training.commands import train

_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}


@click.group(cls=Commands, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="whilesim")
def main() -> None:
    """Write, play, grade and publish training conversations for a support agent.

    From nothing but the agent's policy document and its tool schemas.

    Example: whilesim demo
    """
    speak_plainly()


_policy = partial(click.option, "--policy", "policy_file", type=FILE, help="Text file with the agent's policy.")
_SCHEMAS = "File with the tool schemas: JSON, YAML, JSON lines or Python source; may be given again."
_tools = partial(click.option, "--tools", "tools_file", type=FILE, multiple=True, help=_SCHEMAS)
_TRIED = "A model to try with one short request; may be given again."
_FORMATS = ["trl", "openai", "sharegpt", "dpo", "kto", "rl"]
_MANY = "Situations to choose from the covering, or 'all' for the complete covering."
_situations = click.option("--situations", default="150", help=_MANY)
_seed = click.option("--seed", default=0, help="Decides every draw that is not a model's.")
_run = click.argument("run", type=click.Path(exists=True, file_okay=False))
_rubric = click.option("--rubric", type=FILE, help="Rubric as JSON or text; the built-in one by default.")


@main.command()
@click.option("--out", default="whilesim-demo", type=FOLDER, help="Folder for the files.")
@click.option("--situations", default=150, help="Situations to play, twice each.")
@_seed
@command
def demo(out: str, situations: int, seed: int, as_json: bool) -> None:
    """Do the whole job on a bundled policy, offline, in seconds.

    Example: whilesim demo
    """
    from whilesim.showcase import count_faults, run_demo

    data, lines = run_demo(Path(out), situations=situations, seed=seed)
    told = {"folder": str(Path(out)), "ledger": _counts(data), "faults": count_faults(data.rows)}
    show(told, "\n".join(lines), as_json=as_json)


@main.command()
@_policy(required=True)
@_tools(required=True)
@_situations
@click.option("--strength", default=2, help="2 lets every pair of values meet, 3 every triple.")
@click.option("--balance", type=float, help="Share of the situations, 0 to 1, that should want a hand-off.")
@_seed
@click.option("--save", type=NEW, help="Write the plan as JSON to this file.")
@command
def plan(balance: float | None, save: str | None, as_json: bool, **options: Any) -> None:
    """Choose situations and write their cards, without playing them.

    Example: whilesim plan --policy policy.md --tools tools.json --situations all
    """
    made = _make_plan(balance=None if balance is None else {"handoff_wanted": balance}, **options)
    if save:
        made.save(save)
    show(made.to_json(), str(made), as_json=as_json)


@main.command()
@_policy()
@_tools()
@click.option("--plan", "plan_file", type=FILE, help="A plan that was saved, in place of the files and options of one.")
@click.option("--agent", default="scripted", help="provider:model, file.py:function or scripted.")
@click.option("--customer", help="The customer's model; the agent's by default.")
@click.option("--base-url", help="Address of an OpenAI-compatible server for --agent.")
@_situations
@click.option("--rollouts", default=2, help="Conversations per situation.")
@click.option("--turns", default=6, help="Customer messages at most, the opening included.")
@_seed
@click.option("--concurrency", default=64, help="Requests at a time, at most.")
@click.option("--run-dir", default="run", type=FOLDER, help="Folder of the run; the same call goes on where it ended.")
@command
def simulate(plan_file: str | None, agent: str, base_url: str | None, as_json: bool, **options: Any) -> None:
    """Write and play conversations from a policy and tool schemas.

    Give --policy and --tools, or a --plan that was saved. The same files, models and seed
    choose the same situations.

    Example: whilesim simulate --policy p.md --tools t.json --agent ollama:qwen3
    """
    from whilesim.evals.agents import load_agent
    from whilesim.street import simulate as play

    chosen = {name: options.pop(name) for name in ("policy_file", "tools_file", "situations", "seed")}
    made = _read_plan(plan_file) if plan_file else _make_plan(**chosen)
    data = play(load_agent(agent, base_url), plan=made, **options)
    show(_counts(data), repr(data), as_json=as_json)


@main.command()
@_run
@_rubric
@click.option("--judge", help="The judge's model; scripted runs need none.")
@click.option("--base-url", help="Address of an OpenAI-compatible server for --judge.")
@click.option("--fraction", default=1.0, help="Share of the survivors that the judge reads, 0 to 1.")
@command
def grade(run: str, rubric: str | None, judge: str | None, base_url: str | None, as_json: bool, **how: Any) -> None:
    """Grade a run: findings, then oracle, then judge.

    Example: whilesim grade run --judge openai:gpt-4.1
    """
    from whilesim.chat.models import Model

    data = _load(run)
    if base_url and not judge:
        raise InputError("--base-url is where the judge answers, and none is named. Type: --judge NAME --base-url URL")
    reader: Any = Model(judge, base_url=base_url) if judge and base_url else judge
    data.grade(Path(rubric) if rubric else None, reader, **how)
    show(_counts(data), f"{data.ledger}\n{data.pass_at}", as_json=as_json)


@main.command()
@_run
@click.option("--rows", type=int, help="Rows to play at most: 200 by default, with --kept three times as many.")
@click.option("--kept", type=int, help="Go on until so many rows are kept.")
@click.option("--agent", help="The agent's model; the one that the run names by default.")
@click.option("--customer", help="The customer's model; the one that the run names by default.")
@click.option("--base-url", help="Address of an OpenAI-compatible server for the agent, as it was given to simulate.")
@_rubric
@click.option("--judge", help="The judge's model, as it was given to grade.")
@command
def refill(run: str, agent: str | None, rows: int | None, kept: int | None, as_json: bool, **how: Any) -> None:
    """Play what a run's kept rows lack, and grade it the same way.

    Example: whilesim refill run --rows 50 --judge openai:gpt-4.1
    """
    from whilesim.evals.agents import load_agent
    from whilesim.refilling import reopen

    player = load_agent(agent, how["base_url"]) if agent else None
    data = reopen(_load(run), agent if how["base_url"] else player, **how).refill(rows, kept)
    show(_counts(data), f"{data.ledger}\n{data.certificate}", as_json=as_json)


@main.command()
@_run
@command
def label(run: str, as_json: bool) -> None:
    """Label conversations by hand, one a screen: keep or drop.

    No verdict is shown; what a check or an oracle drops comes last, since no judge reads it.
    Each answer is on disk at once, in labels.jsonl in the run's folder, and the same call goes
    on where it ended.

    Example: whilesim label run
    """
    from whilesim.chat.messages import read_messages
    from whilesim.core.seeds import shuffled
    from whilesim.grading.label import label as ask

    played = shuffled((row for row in _load(run).rows if row.state != "failed"), 0, "label")
    played.sort(key=lambda row: row.verdict is not None and row.verdict.rule.startswith(("check:", "oracle:")))
    path, told = Path(run, "labels.jsonl"), {row.id: read_messages(row.messages) for row in played}
    count = ask(told, path, answers=sys.stdin, screen=sys.stderr if as_json else sys.stdout)
    done = f"\n{count} of {len(told)} labelled. For the judge's report type: data.trust({path.as_posix()!r})"
    show({"labels": str(path), "labelled": count, "rows": len(told)}, done, as_json=as_json)


@main.command()
@_run
@click.option("--out", default="report.html", type=NEW, help="File to write.")
@command
def report(run: str, out: str, as_json: bool) -> None:
    """Write a run as one page to look at.

    Example: whilesim report run --out report.html
    """
    _load(run).report(out)
    show({"report": out}, out, as_json=as_json)


@main.command()
@_run
@click.argument("out", type=NEW)
@click.option("--format", "form", default="trl", type=click.Choice(_FORMATS), help="Who will read it.")
@command
def export(run: str, out: str, form: Any, as_json: bool) -> None:
    """Write the kept rows for a trainer.

    Example: whilesim export run train.jsonl --format trl
    """
    data = _load(run)
    done = (data if form in ("dpo", "kto") else data.kept).export(out, format=form)
    show(asdict(done), str(done), as_json=as_json)


@main.command()
@_run
@click.argument("name")
@click.option("--public", is_flag=True, help="Publish; private by default.")
@command
def push(run: str, name: str, public: bool, as_json: bool) -> None:
    """Push the kept rows to the Hub as a dataset with a card.

    Example: whilesim push run you/support-sft
    """
    done = _load(run).kept.push_to_hub(name, private=not public)
    show(asdict(done), str(done), as_json=as_json)


@main.command()
@_run
@click.argument("row")
@command
def explain(run: str, row: str, as_json: bool) -> None:
    """Print all that is known of one row.

    Example: whilesim explain run s0001/r0
    """
    data = _load(run)
    show(data.find(row).to_json(), data.explain(row), as_json=as_json)


for _other in (*COMMANDS, train):
    main.add_command(_other)


@main.command()
@click.option("--agent", "--model", "models", multiple=True, help=_TRIED)
@click.option("--base-url", help="Address of an OpenAI-compatible server that has these models.")
@command
def doctor(models: tuple[str, ...], base_url: str | None, as_json: bool) -> None:
    """Say what is here: versions, keys, endpoints, embedder, prices.

    Of a key only whether it is set. Without --agent, each endpoint that the environment names
    is asked. Exit code 2 where a model that was named does not answer.

    Example: whilesim doctor --agent openai:gpt-4.1-mini
    """
    from whilesim.chat.models import Model
    from whilesim.doctor import examine, tell

    found = examine([Model(name, base_url=base_url) for name in models])
    show(found, tell(found), as_json=as_json)
    if models and not all(one["answers"] for one in found["models"]):
        sys.exit(2)


def _read_plan(path: str) -> Any:
    from whilesim.cards.planning import load_plan

    context = click.get_current_context()
    own = {"policy_file": "--policy", "tools_file": "--tools", "situations": "--situations", "seed": "--seed"}
    given = [own[name] for name in own if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if given:
        raise InputError(f"--plan {path} decides what {', '.join(given)} would: leave out one or the other.")
    return load_plan(path)


def _make_plan(policy_file: str | None, tools_file: Sequence[str], situations: str, **options: Any) -> Any:
    from whilesim.cards.planning import plan as make_plan

    if situations != "all" and not situations.isdecimal():
        raise InputError(f"--situations {situations!r} is no number. Type a number from 1, or: --situations all")
    many = None if situations == "all" else int(situations)
    if policy_file is None or not tools_file:
        lacking = "--policy" if policy_file is None else "--tools"
        raise InputError(f"{lacking} is missing: a plan needs both files. Type: --policy policy.md --tools tools.json")
    files = [Path(file) for file in tools_file]
    tools: Any = files if len(files) > 1 else files[0]
    return make_plan(tools=tools, system_prompt=read_policy(policy_file), situations=many, **options)


def _load(run: str) -> Any:
    from whilesim.keeping.loading import load

    return load(run)


def _counts(data: Any) -> dict[str, Any]:
    ledger = data.ledger
    return {name: getattr(ledger, name) for name in ("planned", "kept", "dropped", "failed", "unjudged", "reasons")}
