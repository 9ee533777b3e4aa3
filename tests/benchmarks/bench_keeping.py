"""Keeping: what survives each format, what the layers of decontamination find, and 20,000 rows.

    python tests/benchmarks/bench_keeping.py [--roundtrip] [--decontaminate [EMBEDDER]] [--pairs] [--large [ROWS]]

Without an option all of it. Decontamination needs ../shared; seconds of CPU and memory of each step on
many rows are measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets

import whilesim as ws
from whilesim.chat.messages import CustomerCall, Message, read_messages
from whilesim.conversations.players import Context
from whilesim.conversations.reading import asks_go_ahead
from whilesim.conversations.scripted import ScriptedAgent
from whilesim.core.jsontext import dumps, read_lines
from whilesim.core.seeds import chance, pick, shuffled
from whilesim.keeping.arrow import from_dataset, write_parquet
from whilesim.keeping.folders import write_rows
from whilesim.keeping.references import read_items
from whilesim.keeping.rows import Row
from whilesim.showcase import demo_policy, demo_tools
from whilesim.situations.tools import parse_tools

TAU2 = Path(__file__).parent.parent.parent.parent / "shared" / "tau2"
LAYERS = ("exact", "13-gram", "8-gram", "embedding", "identifiers", "structure")
EACH = 10  # rows planted for a layer
HOSTILE: dict[str, Any] = {
    "lone surrogates": "thanks \ud83d bye \udc00",
    "NUL": "Tr\x00ansfer",
    "2**70": {"n": 2**70},
    "NaN and infinity": {"n": float("nan"), "m": float("inf")},
    "floats": {"a": 0.1, "b": 1e-320, "c": 1.7976931348623157e308, "d": -0.0, "e": 5e-324},
    "empty lists and objects": {"a": [], "b": {}, "c": [[], [{}]], "d": ""},
    "500 levels": json.loads("[" * 500 + "]" * 500),
    "right to left, marks": "\u202eمرحبا\u202c \u200fשלום",
    "emoji": "👩‍👩‍👧 🏳️‍🌈 🇺🇳",
    "1 MB": "x" * (1 << 20),
    "mixed types in a list": [1, "1", 1.0, True, None, [1], {"1": 1}],
    "keys": {"": 1, "a.b": 2, "null": None, "__class__": "x", "\u2028": "\u2029"},
    "text that looks escaped": "\\ud800 \\u0000 \\n \"'",
}


def play(policy: str, tools: Any, situations: int, rollouts: int = 1, seed: int = 0) -> ws.Simulation:
    size = {"situations": situations, "rollouts": rollouts}
    return ws.simulate(tools=tools, system_prompt=policy, seed=seed, progress=False, **size).grade()


def with_value(row: Row, value: Any) -> Row:
    """The row with a value where customers, worlds and models put theirs."""
    text = value if isinstance(value, str) else dumps(value)
    wire = row.to_json()
    wire["messages"][1]["content"] = text
    for message in wire["messages"]:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = dumps({"value": value})
    return Row.from_json({**wire, "final_state": {"order": {"1": {"value": value}}}, "planted": [{"value": value}]})


def roundtrip() -> None:
    """Print for each hostile value and format whether what was read equals what was written."""
    row = next(
        r for r in play(demo_policy(), demo_tools(), 6).kept.rows if any(m.get("tool_calls") for m in r.messages)
    )
    print(f"{'':<26}" + "".join(f"{name:>12}" for name in FORMATS))
    for name, value in HOSTILE.items():
        made = with_value(row, value)
        told = []
        for write_and_read in FORMATS.values():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    told.append(write_and_read(made, Path(folder)))
                except Exception as error:  # the table shows what fails, whatever it is
                    told.append(type(error).__name__)
        print(f"{name:<26}" + "".join(f"{each:>12}" for each in told))


def _equal(found: Any, made: Any) -> str:
    return "equal" if found == made else "DIFFERENT"


def _jsonl(row: Row, folder: Path) -> str:
    ws.Simulation([row]).save(folder)
    return _equal(list(ws.load(folder).rows), [row])


def _parquet(row: Row, folder: Path) -> str:
    import pyarrow.parquet as parquet

    from whilesim.keeping.arrow import from_cells

    write_parquet([row], folder / "rows.parquet")
    return _equal([from_cells(cells) for cells in parquet.read_table(folder / "rows.parquet").to_pylist()], [row])


def _dataset(row: Row, folder: Path) -> str:
    from datasets import load_from_disk

    ws.Simulation([row]).to_dataset().save_to_disk(folder / "set")
    return _equal(list(from_dataset(load_from_disk(folder / "set"))), [row])


def _pandas(row: Row, folder: Path) -> str:
    frame = ws.Simulation([row]).to_pandas()
    return _equal([Row.from_json(record) for record in frame.to_dict("records")], [row])


def _export(name: Any) -> Callable[[Row, Path], str]:
    def write_and_read(row: Row, folder: Path) -> str:
        from datasets import disable_progress_bars, load_dataset

        disable_progress_bars()
        done = ws.Simulation([row]).export(folder / "x.jsonl", format=name)
        if not done.lines:
            return "left out"
        load_dataset("json", data_files=done.path, split="train", cache_dir=str(folder / "cache"))
        (line,) = [value for _, value in read_lines(done.path)]
        held = line.get("messages") or [{"content": turn["value"]} for turn in line["conversations"]]
        return _equal(held[1]["content"], row.messages[1]["content"])

    return write_and_read


FORMATS = {"jsonl": _jsonl, "parquet": _parquet, "dataset": _dataset, "pandas": _pandas,
           "trl": _export("trl"), "openai": _export("openai"), "sharegpt": _export("sharegpt")}  # fmt: skip


def benchmark(domain: str) -> list[dict[str, Any]]:
    """The tasks of a domain; telecom's 2,285 with their texts put in."""
    full = TAU2 / domain / "tasks_full.jsonl"
    if not full.exists():
        return [value for _, value in read_lines(TAU2 / domain / "tasks_text.jsonl")]
    texts = json.loads((TAU2 / domain / "texts.json").read_text(encoding="utf-8"))
    tasks = []
    for _, task in read_lines(full):
        said = {key: None if n is None else texts[key][n] for key, n in task["text"].items()}
        tasks.append({"id": task["id"], **said, "actions": task["actions"]})
    return tasks


def plant(layer: str, row: Row, task: dict[str, Any], reading: set[str]) -> Row | None:
    """The row with something of a task in it; None where the task has nothing for this layer."""
    asked = task.get("instructions", task)
    text = asked if isinstance(asked, str) else asked.get("reason_for_call", "")
    words = text.split()
    if layer == "exact":
        return _opened(row, text)
    if layer in ("13-gram", "8-gram"):
        size = int(layer.split("-")[0])
        cut = words[3 : 3 + size + 1]
        return _opened(row, f"well {' '.join(cut)} and so on") if len(cut) > size else None
    if layer == "embedding":
        mine = _first_person(text).split()
        return _opened(row, " ".join(w for i, w in enumerate(mine) if i % 6 != 5)) if len(mine) > 11 else None
    if layer == "identifiers":
        (item,) = read_items([task])
        return _opened(row, f"It is about {min(item.names)}, as I said.") if item.names else None
    return _done(row, task, reading)


def _opened(row: Row, text: str) -> Row:
    messages = [dict(m) for m in row.messages]
    messages[1]["content"] = text
    return row.model_copy(update={"messages": messages})


def _first_person(text: str) -> str:
    for you, me in (("you are", "I am"), ("your", "my"), ("yourself", "myself"), ("you", "I")):
        text = re.sub(rf"\b{you}\b", me, text, flags=re.IGNORECASE)
    return text


def _done(row: Row, task: dict[str, Any], reading: set[str]) -> Row | None:
    """The row with all calls that the task wants, each answered."""
    (item,) = read_items([task])
    deeds = [call for call in item.calls if call.name not in reading]
    if not any(call.named for call in deeds) and len(set(deeds)) < 3:
        return None
    messages, made = [dict(m) for m in row.messages[:2]], []
    for n, call in enumerate(item.calls):
        arguments = call.told.removeprefix(f"{call.name}(")[:-1]
        if call.customer:
            made.append(CustomerCall(after_message=1, name=call.name, arguments=arguments, reply="done"))
            continue
        function = {"name": call.name, "arguments": arguments}
        messages.append({"role": "assistant", "content": None,
                         "tool_calls": [{"id": f"p{n}", "type": "function", "function": function}]})  # fmt: skip
        messages.append({"role": "tool", "content": "{}", "tool_call_id": f"p{n}"})
    messages.append({"role": "assistant", "content": "That is done."})
    return row.model_copy(update={"messages": messages, "customer_calls": made, "failed_calls": []})


def decontaminate(embedder: str) -> None:
    """Print for each layer how many planted rows it found, how many any layer found, and false alarms."""
    for domain in ("telecom", "retail", "airline"):
        policy = (TAU2 / domain / "policy.md").read_text(encoding="utf-8")
        tools = json.loads((TAU2 / domain / "tools.json").read_text(encoding="utf-8"))
        tasks = benchmark(domain)
        data = play(policy, tools, 100, seed=11)  # 0 and 7 set the limits
        began = time.perf_counter()
        alarms = data.decontaminate(tasks, embedder=embedder)
        seconds = time.perf_counter() - began
        print(
            f"\n{domain}: {len(tasks):,} tasks, {len(data)} clean rows, {len(alarms.evidence)} false alarms, {seconds:.1f} s"
        )
        rows = list(data.rows)
        reading = {tool.name for tool in data.tools if tool.effect not in ("write", "handoff")}
        planted, kinds = [], {}
        for layer in LAYERS:
            made = (
                plant(layer, rows[n], task, reading) for n, task in enumerate(shuffled(tasks, 0, layer)[: len(rows)])
            )
            for number, row in enumerate([row for row in made if row is not None][:EACH]):
                row = row.model_copy(update={"id": f"{layer}{number}/r0"})
                planted.append(row)
                kinds[row.id] = layer
        report = ws.Simulation(planted, data.manifest).decontaminate(tasks, embedder=embedder)
        by_layer = {row_id: [e.layer for e in seen] for row_id, seen in report.evidence.items()}
        false = Counter(e.layer for seen in alarms.evidence.values() for e in seen)
        print(f"  {'planted':<12}{'rows':>6}{'its layer':>11}{'any layer':>11}{'false alarms':>14}")
        for layer in LAYERS:
            mine = [row_id for row_id, kind in kinds.items() if kind == layer]
            own = sum(layer in by_layer.get(row_id, ()) for row_id in mine)
            print(f"  {layer:<12}{len(mine):>6}{own:>11}{sum(i in by_layer for i in mine):>11}{false[layer]:>14}")
        print("  " + str(report).replace("\n", "\n  "))


ERRORS = ("claims a deed", "skips the question", "takes another record", "refuses", "hands off")


class Erring:
    """The scripted agent, but in nearly half of its conversations it errs once, in one of five ways."""

    def __init__(self, tools: Any) -> None:
        self.effects = {tool.name: tool.effect for tool in parse_tools(tools)}
        self.script = ScriptedAgent(faults=0.0)

    async def __call__(self, wire: list[dict[str, Any]], context: Context) -> Message:
        messages = read_messages(wire)
        (right,) = await self.script.answer(messages, context)
        before = [call for message in messages for call in message.tool_calls]
        wrote = any(self.effects[call.name] == "write" for call in before)
        if wrote or not chance(0.45, "errs", context.case, context.rollout):
            return right
        error = pick(ERRORS, "error", context.case, context.rollout)
        call = right.tool_calls[0] if right.tool_calls else None
        writes = call is not None and self.effects[call.name] == "write"
        if error == "claims a deed" and call and writes:
            deed = "That's done now: your request has gone through. Is there anything else?"
            return right if any(m.content == deed for m in messages) else Message(role="assistant", content=deed)
        if error == "refuses" and call and not before:
            return Message(role="assistant", content="I'm sorry, I am not able to do that for you.")
        if error == "hands off" and call and writes:
            name = next((name for name, effect in self.effects.items() if effect == "handoff"), call.name)
            told = replace(call, name=name, arguments='{"summary": "The customer needs help."}')
            return replace(right, tool_calls=(told,))
        if error == "takes another record" and call and call.name not in [made.name for made in before]:
            text = re.sub(r"\d(?=\d*\D*$)", lambda m: str((int(m.group()) + 3) % 10), call.arguments, count=1)
            return replace(right, tool_calls=(replace(call, arguments=text),))
        if error == "skips the question" and asks_go_ahead(right.content or ""):
            (then,) = await self.script.answer(
                [*messages, right, Message(role="user", content="Yes, go ahead.")], context
            )
            if any(self.effects[made.name] == "write" for made in then.tool_calls):
                return then
        return right


def pairs() -> None:
    """Print ten preference pairs of each domain with their reasons, and what gave none."""
    domains = {"demo": (demo_policy(), demo_tools())}
    for name in ("retail", "telecom") if TAU2.is_dir() else ():
        tools = json.loads((TAU2 / name / "tools.json").read_text(encoding="utf-8"))
        domains[name] = ((TAU2 / name / "policy.md").read_text(encoding="utf-8"), tools)
    for name, (policy, tools) in domains.items():
        plan = ws.plan(tools=tools, system_prompt=policy, situations=50, twins=0.3)
        data = ws.simulate(Erring(tools), plan=plan, rollouts=4, progress=False).grade()
        print(f"\n{name}: {len(data.kept)} kept, {len(data.dropped)} dropped, {dict(data.ledger.reasons['dropped'])}")
        with tempfile.TemporaryDirectory() as folder:
            done = data.export(f"{folder}/dpo.jsonl", format="dpo")
            found = [pair for _, pair in read_lines(done.path)]
        print(f"{done.lines} pairs; {dict(done.left_out)}")
        print(Counter(f"{pair['cause']} {pair['rule']}" for pair in found))
        chosen = shuffled(range(len(found)), 0, name)[:10]
        for pair in (found[n] for n in sorted(chosen)):
            print(f"\n{pair['rows']} {pair['rule']}: {pair['reason']}")
            print(f"  after   {_told(pair['prompt'][-1])}")
            print(f"  chosen  {_told(pair['chosen'][0])}")
            print(f"  not     {_told(pair['rejected'][0])}")


def _told(message: dict[str, Any]) -> str:
    calls = [f"{c['function']['name']}({dumps(c['function']['arguments'])})" for c in message.get("tool_calls", ())]
    return " ".join([f"[{message['role']}]", (message["content"] or "").replace("\n", " / ")[:160], *calls])


STEPS = {
    "save": "ws.load(src).save(out)",
    "load": "data = ws.load(src); print(len(data))",
    "ledger": "str(ws.load(src).ledger)",
    "filter by calls": "len(ws.load(src).filter(calls=['*:error']))",
    "export trl": "ws.load(src).export(out / 'x.jsonl')",
    "export dpo": "ws.load(src).export(out / 'x.jsonl', format='dpo')",
    "export kto": "ws.load(src).export(out / 'x.jsonl', format='kto')",
    "to_dataset": "ws.load(src).to_dataset()",
    "parquet": "from whilesim.keeping.arrow import write_parquet; write_parquet(ws.load(src).rows, out / 'x.parquet')",
    "to_pandas": "ws.load(src).to_pandas()",
    "a frame by itself": "import json, pandas; pandas.DataFrame(list(map(json.loads, open(f'{src}/rows.jsonl'))), dtype=object)",
    "push, dry run": "ws.load(src).push_to_hub('you/rows', dry_run=True)",
    "distinct": "len(ws.load(src).distinct())",
    "report": "ws.load(src).report(out / 'x.html')",
}


def large(count: int) -> None:
    """Print seconds and peak memory of each step over many rows."""
    base = list(play(demo_policy(), demo_tools(), 100, rollouts=2).rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        folder.mkdir()
        write_rows(folder / "rows.jsonl", _many(base, count))
        with (folder / "verdicts.jsonl").open("w", encoding="utf-8") as out:
            for row in _many(base, count):
                verdict = row.to_json()["verdict"]
                out.write(dumps({"id": row.id, "verdict": verdict, "findings": row.to_json()["findings"]}) + "\n")
        size = (folder / "rows.jsonl").stat().st_size / 1e6
        print(f"{count:,} rows, {size:,.0f} MB of rows.jsonl; seconds of CPU, peak memory")
        for step, code in STEPS.items():
            # Linux' getrusage tells no less than the process that began this one had: more than many steps need
            source = ("import resource, sys, time; from pathlib import Path; import whilesim as ws\n"
                      "src, out = sys.argv[1], Path(sys.argv[2]); began = time.process_time()\n"
                      f"{code}\n"
                      "took, status = time.process_time() - began, Path('/proc/self/status')\n"
                      "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
                      "peak = status.read_text().split('VmHWM:')[1].split()[0] if status.exists() else peak\n"
                      "print(took, int(peak) / 1024)")  # fmt: skip
            with tempfile.TemporaryDirectory() as out:
                done = subprocess.run([sys.executable, "-c", source, str(folder), out], capture_output=True, text=True)
            told = done.stdout.split()[-2:] if done.returncode == 0 else None
            line = f"{float(told[0]):>8.1f} s {float(told[1]):>8,.0f} MB" if told else done.stderr.splitlines()[-1]
            print(f"  {step:<18}{line}", flush=True)


def _many(base: list[Row], count: int) -> Iterator[Row]:
    for n in range(count):
        row = base[n % len(base)]
        yield row.model_copy(update={"id": f"c{n // len(base)}-{row.id}"})


if __name__ == "__main__":
    datasets.disable_progress_bars()
    parser = argparse.ArgumentParser()
    parser.add_argument("--roundtrip", action="store_true")
    parser.add_argument("--decontaminate", nargs="?", const="auto")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--large", nargs="?", const=20_000, type=int)
    asked = parser.parse_args()
    everything = not any(vars(asked).values())
    if everything or asked.roundtrip:
        roundtrip()
    if everything or asked.pairs:
        pairs()
    if (everything or asked.decontaminate) and TAU2.is_dir():
        decontaminate(asked.decontaminate or "auto")
    elif everything or asked.decontaminate:
        print(f"decontamination is measured on the texts of tau2-bench, and {TAU2} is absent", file=sys.stderr)
    if everything or asked.large:
        large(asked.large or 20_000)
