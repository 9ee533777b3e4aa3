"""Benchmark: how often the checks are right, and how fast they are.

    python tests/benchmarks/bench_checks.py [../shared]

Prints a table: false alarms and hits on labelled real conversations, recall on errors
planted in them, recall and precision on our own table of cases (a frozen third apart), and
conversations per second. The labelled conversations lie beside the project; without them
only the table of cases is measured.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from whilesim.core.seeds import pick
from whilesim.grading.checks import run_checks
from whilesim.grading.checks.deeds import open_toolbox
from whilesim.grading.checks.identifiers import is_id, leaves

sys.path.insert(0, str(Path(__file__).parent.parent / "grading"))

THREE = ("claimed_action_without_call", "unsourced_identifier", "success_after_failure")
WORDINGS = (
    "Error: the request could not be completed.",
    '{"error": "payment declined"}',
    '{"success": false, "message": "The record is locked."}',
    '{"status": "failed", "reason": "no inventory"}',
    '{"ok": false}',
    "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "HTTP 503 Service Unavailable",
    "TimeoutError: upstream did not answer within 30 s",
    '{"code": 409, "message": "Conflict"}',
    "The operation was rejected by the server.",
    "Unable to process this request at this time.",
    '{"errors": [{"field": "payment_id", "message": "is invalid"}]}',
    "Request timed out",
    '{"result": {"status": "error", "detail": "insufficient funds"}}',
    "This reservation cannot be changed.",
)


def load(shared: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return conversations, their labels, and the tools they were played with."""
    lines = (shared / "gold" / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    labels = (shared / "gold" / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    tools = json.loads((shared / "tau2" / "airline" / "tools.json").read_text(encoding="utf-8"))
    think = {"name": "think", "parameters": {"type": "object", "properties": {"thought": {"type": "string"}}}}
    return [json.loads(x) for x in lines], [json.loads(x) for x in labels], [*tools, think]


def score_gold(conversations: Any, labels: Any, tools: Any) -> dict[str, Counter[str]]:
    """Count hits, misses, false alarms and ignored spots for each check."""
    score: dict[str, Counter[str]] = {}
    for conversation, label in zip(conversations, labels, strict=True):
        found = run_checks(conversation["messages"], tools)
        for check in (*THREE, "acted_without_confirmation", "repeated_failing_call", "text_with_tool_call"):
            spots = label["labels"].get(check, [])
            spots = spots or [s for s in label["labels"]["other_conduct"] if s.get("category") == check]
            clear = {s["message_index"] for s in spots if s["certainty"] == "clear"}
            vague = {s["message_index"] for s in spots if s["certainty"] != "clear"}
            vague |= _amounts(label) if check in THREE else set()
            hits = {f.message_index for f in found if f.check == check}
            count = score.setdefault(check, Counter())
            count.update(hit=len(hits & clear), missed=len(clear - hits), false=len(hits - clear - vague))
            count.update(ignored=len(hits & vague - clear))
        known = {*THREE, "acted_without_confirmation", "repeated_failing_call", "text_with_tool_call"}
        for finding in found:
            if finding.check not in known:
                score.setdefault(finding.check, Counter()).update(false=1)
    return score


def _amounts(label: Any) -> set[int]:
    """Spots where a wrong amount is told: labelled as other conduct, and found as a claim."""
    return {s["message_index"] for s in label["labels"]["other_conduct"] if s["category"] == "misreported_outcome"}


def planted(conversations: Any, tools: Any) -> dict[str, tuple[int, int]]:
    """Plant errors in every conversation; return found and planted for each kind."""
    count: dict[str, list[int]] = {}
    writes = open_toolbox(tools).writes
    for number, conversation in enumerate(conversations):
        messages = conversation["messages"]
        base = {_key(f) for f in run_checks(messages, tools)}
        for place, changed, checks in _plants(messages, writes, number):
            new = {_key(f) for f in run_checks(changed, tools)} - base
            kind = place.split(":")[0]
            tally = count.setdefault(kind, [0, 0])
            tally[1] += 1
            tally[0] += any(check in checks for check, _ in new)
    return {kind: (found, all_) for kind, (found, all_) in count.items()}


def _key(finding: Any) -> tuple[str, str]:
    return finding.check, finding.quote


def _plants(messages: Any, writes: Any, number: int) -> Any:
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            reply = next((j for j in range(index + 1, len(messages)) if messages[j]["role"] == "tool"), None)
            if reply is None:
                continue
            good = name in writes and "rror" not in (messages[reply]["content"] or "")[:20]
            if good and _tells(messages, reply, name, writes):
                yield f"write deleted:{index}", _without(messages, index, reply), THREE
                for wording in WORDINGS:
                    changed = copy.deepcopy(messages)
                    changed[reply]["content"] = wording
                    yield f"write failed:{index}", changed, ("success_after_failure",)
            for key, value in leaves(arguments):
                if is_id(key, value) and isinstance(value, str):
                    changed = copy.deepcopy(messages)
                    fake = _shift(value, number + index)
                    if any(fake in (m.get("content") or "") for m in messages[:index]):
                        continue
                    text = call["function"]["arguments"].replace(value, fake)
                    changed[index]["tool_calls"][message["tool_calls"].index(call)]["function"]["arguments"] = text
                    yield f"id changed:{index}", changed, ("unsourced_identifier",)


def _tells(messages: Any, reply: int, name: str, writes: Any) -> bool:
    """Whether the agent's next words tell of the deed, and no like call repairs the deletion."""
    if "transfer" in name:
        return False
    for later in messages[reply + 1 :]:
        if any(c["function"]["name"] in writes for c in later.get("tool_calls") or []):
            return False
        if later["role"] == "assistant" and later.get("content") and not later.get("tool_calls"):
            return True
    return False


def _without(messages: Any, index: int, reply: int) -> Any:
    changed = copy.deepcopy(messages)
    del changed[reply], changed[index]
    return changed


def _shift(value: str, seed: int) -> str:
    places = [i for i, c in enumerate(value) if c.isdigit()]
    at = places[pick(range(len(places)), seed, value)]
    return value[:at] + str((int(value[at]) + 1 + pick(range(8), seed, value, "by")) % 10) + value[at + 1 :]


def speed(conversations: Any, tools: Any) -> tuple[float, float]:
    """Conversations per second of this process's own time, one core: median and best of nine passes."""
    seconds = []
    for _ in range(10):
        start = time.process_time()
        for conversation in conversations:
            run_checks(conversation["messages"], tools)
        seconds.append(time.process_time() - start)
    warm = seconds[1:]
    return len(conversations) / median(warm), len(conversations) / min(warm)


def growth(conversations: Any, tools: Any) -> float:
    """How much longer a conversation eight times as long takes, per message."""
    messages = max((c["messages"] for c in conversations), key=len)

    def seconds(repeat: int) -> float:
        long = [messages[0], *(m for _ in range(repeat) for m in messages[1:])]
        start = time.process_time()
        run_checks(long, tools)
        return (time.process_time() - start) / len(long)

    seconds(1)
    return seconds(16) / seconds(2)


def main() -> None:
    """Print the tables."""
    from test_checks_cases import CASES, FAMILIES, UNSEEN, load_cases, score_cases

    shared = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[3] / "shared")
    if (shared / "gold").is_dir():
        conversations, labels, tools = load(shared)
        for title, given in (("labelled conversations", tools), ("the same without tools", None)):
            print(f"\n{title}: {len(conversations)}")
            for check, count in score_gold(conversations, labels, given).items():
                print(
                    f"  {check:30} hit {count['hit']:3}  missed {count['missed']:3}  false {count['false']:3}  ignored {count['ignored']:3}"
                )
        print("\nplanted errors")
        for kind, (found, planted_) in planted(conversations, tools).items():
            print(f"  {kind:30} {found} of {planted_} ({found / planted_:.1%})")
        print(
            "\nspeed: {:.0f} conversations/s in the median, {:.0f} at best; ".format(*speed(conversations, tools))
            + f"per message, 8 times as long takes {growth(conversations, tools):.2f} times"
        )
    print("\nour table of cases")
    for family in FAMILIES:
        for part in ("open", "frozen"):
            s = score_cases(load_cases(family, frozen=part == "frozen"), family)
            print(f"  {family:16} {part:7} {s.summary()}")
    for family, *_ in UNSEEN:
        first = (CASES / f"{family}.txt").read_text(encoding="utf-8").split("First run: ")[1].split("\n")[0]
        print(f"  {family:16} now     {score_cases(load_cases(family), family).summary()}; first run: {first}")


if __name__ == "__main__":
    main()
