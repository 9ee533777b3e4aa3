"""Commands: golden tickets from a shell."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

import click

from whilesim.core.errors import GateFailed, InputError
from whilesim.core.jsontext import dumps
from whilesim.shell import FILE, FOLDER, NEW, Commands, command, show

_STARTER = Path(__file__).parent.parent / "starter"
_PATH = click.Path(exists=True)
_SHARE, _WAYS = click.FloatRange(0, 1), click.Choice(["estimate", "fail", "pass"])
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_split = click.option("--split", default="nightly", help="Split of the dataset.")
_SUITE = [
    click.option("--tools", type=FILE, multiple=True, help="The agent's tools, in any dialect; may be given again."),
    click.option("--policy", type=FILE, help="Text file with the agent's policy."),
    click.option("--rubric", type=FILE, help="rubric.json: weights, hard fail, rules."),
]
_SERVED = "NAME=SPEC, or a SPEC that is its own name; may be given again."
_AGENT = "module:function, eval/agent.py:agent, provider:model, the address of a sandbox, or scripted."
_RUN = [
    click.option("--agent", default="scripted", help=_AGENT),
    *_SUITE,
    click.option("--judge", help="A model for ux and groundedness; without one they are not scored."),
    click.option("--customer", help="A model that speaks for tickets with a persona."),
    click.option("--trials", default=1, help="How often each ticket is played."),
    click.option("--turns", default=6, help="Customer messages at most."),
    click.option("--run-dir", type=FOLDER, help="Folder for traces.jsonl and scores.json."),
    click.option("--protocol", type=FILE, help="A frozen protocol that the run must agree with."),
    click.option("--no-floors", is_flag=True, help="Leave out the trivial agents."),
]


def _with(options: Sequence[_Decorator]) -> _Decorator:
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


_PLAYING = {p.opts[0] for p in click.command(_with(_RUN)(lambda: None)).params}
_TYPED = click.core.ParameterSource.COMMANDLINE


def _show_floors(found: Mapping[str, Any], *, as_json: bool) -> None:
    from whilesim.evals.results import tell_floors

    told = {name: {**asdict(floor), "rate": floor.rate} for name, floor in found.items()}
    show(told, "\n".join(tell_floors(found)), as_json=as_json)


def _evaluate(tickets: str | None, how: dict[str, Any], agent: str) -> Any:
    from whilesim.evals.agents import load_agent
    from whilesim.evals.runner import evaluate
    from whilesim.evals.setup import read_options

    with redirect_stdout(sys.stderr), warnings.catch_warnings():  # what the user's code prints is no part of the result
        if not click.get_current_context().params["as_json"]:  # the text says itself that a suite is weak
            warnings.filterwarnings("ignore", message=".*so they tell little")
        return evaluate(load_agent(agent), tickets, **read_options(how))


@click.command("eval")
@click.argument("tickets", required=False)
@_with(_RUN)
@click.option("--init", is_flag=False, flag_value=".", help="Write twenty tickets, a rubric and three workflows here.")
@click.option("--freeze", type=NEW, help="Write the protocol of the run to this file, and play nothing.")
@click.option("--push", help="owner/name: publish traces and scores on the Hub, beside the runs before.")
@_split
@command
def eval_(tickets: str | None, agent: str, as_json: bool, **how: Any) -> None:
    """Play golden tickets with an agent, and score it beside others.

    Example: whilesim eval eval/golden_tickets.jsonl --rubric eval/rubric.json
    """
    init, freeze, push, split = (how.pop(name) for name in ("init", "freeze", "push", "split"))
    if init is not None:
        written = write_starter(Path(init))
        files = {"--rubric": "rubric.json", "--policy": "policy.md", "--tools": "tools.json"}
        given = [w for option, name in files.items() for w in (option, Path(init, "eval", name).as_posix())]
        typed = shlex.join(["whilesim", "gate", Path(init, "eval", "golden_tickets.jsonl").as_posix(), *given])
        show(written, "\n".join([*written, f"Type: {typed}"]), as_json=as_json)
    elif freeze is not None:
        from whilesim.evals.setup import freeze_protocol, read_options

        told = freeze_protocol(freeze, tickets, **read_options(how))
        show(told, f"{freeze}: {told['count']} tickets, {told['trials']} trial(s) frozen", as_json=as_json)
    else:
        from whilesim.evals.publish import check_place

        if push is not None:  # before anything is paid for
            check_place(push, split)
        result = _evaluate(tickets, how, agent)
        if not as_json:  # before anything is pushed, which may be refused
            click.echo(str(result))
        pushed = result.push_to_hub(push, split=split) if push else None
        if as_json or pushed:
            show({**result.summary(), "pushed": pushed}, f"pushed to {push} at {pushed}", as_json=as_json)


@click.command("gate")
@click.argument("tickets")
@_with(_RUN)
@click.option("--min-policy", type=_SHARE, default=1.0, help="Policy to reach; 1 is every ticket.")
@click.option("--min-resolution", type=_SHARE, help="Resolution to reach; printed only by default.")
@click.option("--min-passed", type=_SHARE, help="Share of tickets to pass, every expected call made in them.")
@click.option("--undecided", type=_WAYS, default="estimate", help="What a threshold inside the interval means.")
@click.option("--junit", type=NEW, help="Write JUnit XML to this file.")
@command
def gate_(tickets: str, agent: str, undecided: Any, as_json: bool, **how: Any) -> None:
    """Pass or fail, by tickets played now or by a run's folder.

    Exit code 1 for a fail.

    Example: whilesim gate eval/golden_tickets.jsonl --rubric eval/rubric.json
    """
    from whilesim.evals.gate import hold, write_junit, write_summary
    from whilesim.evals.results import load_result

    ctx, folder = click.get_current_context(), Path(tickets).is_dir()
    given = {p.opts[0] for p in ctx.command.params if ctx.get_parameter_source(p.name or "") is _TYPED} & _PLAYING
    if folder and given:
        told = f"{tickets!r} is a run that was played already, so nothing would read {', '.join(sorted(given))}"
        raise InputError(f"{told}. Leave that out, or type the path of the tickets.")
    result = load_result(tickets) if folder else _evaluate(tickets, how, agent)
    report = hold(result, how["min_policy"], how["min_resolution"], how["min_passed"], undecided)
    if how["junit"]:
        write_junit(result, report, how["junit"])
    write_summary(result, report)
    show({**asdict(report), "run": result.summary()}, f"{result}\n{report}", as_json=as_json)
    if not report.passed:
        raise GateFailed(f"{len(report.reasons)} of {len(result.by_ticket)} tickets fail the gate.")


@click.command("compare")
@click.argument("folders", nargs=-1, type=_PATH)
@click.option("--hub", help="owner/name: print the runs that were pushed there, over time.")
@_split
@command
def compare_(folders: tuple[str, ...], hub: str | None, split: str, as_json: bool) -> None:
    """Compare two runs, or the runs on the Hub over time.

    Example: whilesim compare runs/before runs/after
    """
    from whilesim.evals.compare import compare, tell_history
    from whilesim.evals.publish import read_history

    if hub is not None:
        runs = read_history(hub, split)
        show(runs, tell_history(runs), as_json=as_json)
    elif len(folders) == 2:
        found = compare(*folders)
        show({**asdict(found), "underpowered": found.underpowered}, str(found), as_json=as_json)
    else:
        raise InputError("two folders are needed, or --hub. Type: whilesim compare runs/before runs/after")


@click.command("floors")
@click.argument("tickets")
@_with(_SUITE)
@command
def floors_(tickets: str, as_json: bool, **how: Any) -> None:
    """Say which golden tickets trivial agents pass.

    What they pass tells little about a real agent.

    Example: whilesim floors eval/golden_tickets.jsonl --tools eval/tools.json --rubric eval/rubric.json
    """
    _show_floors(_evaluate(tickets, how, "do_nothing").floors, as_json=as_json)


@click.command("serve")
@click.option("--agent", "agents", multiple=True, default=["scripted"], help=_SERVED)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, help="Port on 127.0.0.1; 0 for any that is free.")
@click.option("--key", help="What clients must send as their key; none by default.")
@command
def serve_(agents: tuple[str, ...], port: int, key: str | None, as_json: bool) -> None:
    """Serve agents as an OpenAI-compatible endpoint on 127.0.0.1.

    The model's name in a request chooses the agent. It returns its tool calls; the client makes them.

    Example: whilesim serve --agent mine=eval/agent.py:agent --port 8765
    """
    from whilesim.evals.agents import load_agent
    from whilesim.evals.serve import BUILT_IN, serving

    pairs = [spec.partition("=")[::2] if "=" in spec else (spec, spec) for spec in agents]
    named = {name: load_agent(spec) for name, spec in pairs}

    async def serve() -> None:
        async with serving(named, port=port, key=key) as url:
            names = list(dict.fromkeys([*named, *BUILT_IN]))
            show({"url": url, "agents": names}, f"{url} serves {', '.join(names)}", as_json=as_json)
            await asyncio.Event().wait()

    with suppress(KeyboardInterrupt):
        asyncio.run(serve())


@click.group("tau2", cls=Commands)
def tau2_() -> None:
    """Results of tau2-bench: read, compare, floors.

    Example: whilesim tau2 read results.json
    """


@tau2_.command("read")
@click.argument("results", nargs=-1, required=True, type=_PATH)
@click.option("--splits", type=FILE, help="The benchmark's split_tasks.json, to name the split of a part of one.")
@click.option("--out", type=NEW, help="Write the run here, keys taken out.")
@command
def tau2_read(results: tuple[str, ...], splits: str | None, out: str | None, as_json: bool) -> None:
    """Read one run: rewards, pass^k, errors counted three ways, split, personas, hand-offs.

    Example: whilesim tau2 read results/telecom.json
    """
    from whilesim.evals.tau2 import read_splits, read_tau2, tell_tau2

    found = read_tau2(*results)
    if out:
        whole = {"info": found.info, "tasks": list(found.tasks.values()), "simulations": found.simulations}
        Path(out).write_text(dumps(whole) + "\n", encoding="utf-8")
    told = found.summary(read_splits(splits) if splits else None)
    show(told, tell_tau2(told), as_json=as_json)


@tau2_.command("compare")
@click.argument("before", type=_PATH)
@click.argument("after", type=_PATH)
@command
def tau2_compare(before: str, after: str, as_json: bool) -> None:
    """Compare two runs: Fisher for single trials, else paired by task; per persona and hand-off.

    Example: whilesim tau2 compare before.json after.json
    """
    from whilesim.evals.tau2 import compare_tau2, read_tau2

    found = compare_tau2(read_tau2(before), read_tau2(after))
    show(asdict(found), str(found), as_json=as_json)


@tau2_.command("floors")
@click.argument("results", type=_PATH)
@command
def tau2_floors(results: str, as_json: bool) -> None:
    """Say what agents that do nothing, or always hand off, score at most on the tasks of a file.

    Example: whilesim tau2 floors results/telecom.json
    """
    from whilesim.evals.tau2 import floors_tau2, read_tasks

    _show_floors(floors_tau2(read_tasks(results)), as_json=as_json)


COMMANDS = (eval_, gate_, compare_, floors_, serve_, tau2_)


def write_starter(folder: Path) -> list[str]:
    """Write the starter suite and its workflows into a folder, and return the paths.

    Raises:
        InputError: A file is there already; nothing was written.
    """
    places = {".yml": folder / ".github" / "workflows"}
    targets = {file: places.get(file.suffix, folder / "eval") / file.name for file in sorted(_STARTER.iterdir())}
    if there := [str(path) for path in targets.values() if path.exists()]:
        msg = f"{there[0]!r} is there already, and would be overwritten. Move it, or type --init another-folder."
        raise InputError(msg)
    for source, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return [str(path) for path in targets.values()]
