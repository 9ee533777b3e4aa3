"""Benchmark: what `trust` says of a good, a random and a length-biased judge, and what injections move.

    python tests/benchmarks/bench_trust.py [--situations N]

The judges are scripted, each with one known property, and read conversations of the demo. The
labels stand in for a person who drops what took the agent longer than most: a judge reads only rows
that nothing speaks against, so both labels must occur among those.
A judge that obeys the last instruction it reads shows that the injection table can fail.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import whilesim as ws
from whilesim.chat.models import CallKey
from whilesim.core.seeds import chance
from whilesim.core.templates import load_words
from whilesim.showcase import demo_policy, demo_tools

sys.path.insert(0, str(Path(__file__).parent.parent))

from judges import Ruled, fickle, gullible, transcript, wordy


def knowing(labels: dict[str, bool], slips: float = 0.05) -> Ruled:
    """Say what the labels say of the conversation with this opening, but for a few slips; words move it nowhere."""

    def rule(prompt: str, key: CallKey, names: list[str]) -> float:
        opening = next(o for o in labels if o in _flat(transcript(prompt)))
        return float(labels[opening] is not chance(slips, 0, "slip", opening))

    return Ruled(rule)


class Counted(Ruled):
    """Remember each verdict by the injected text in front of it."""

    def __init__(self, judge: Ruled) -> None:
        super().__init__(judge.rule)
        self.kept: Counter[tuple[str, bool]] = Counter()

    async def reply(self, messages: Any, tools: Any = (), *, schema: Any = None, key: CallKey = CallKey()) -> Any:  # noqa: B008  a frozen value
        answer = await super().reply(messages, tools, schema=schema, key=key)
        said = _flat(transcript(messages[1].content))
        for item in load_words("probes")["injections"]:
            for verdict, json, score in (("keep", "true", "1.0"), ("drop", "false", "0.0")):
                if _flat(item["text"].format(verdict=verdict, json=json, score=score)) in said:
                    obeyed = ('"keep": true' in answer.message.content) is (verdict == "keep")
                    self.kept[item["text"], obeyed] += 1
        return answer


def _flat(text: str) -> str:
    return re.sub(r"[\s|]+", " ", text).strip()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--situations", type=int, default=60)
    situations = parser.parse_args().situations
    data = ws.simulate(
        tools=demo_tools(), system_prompt=demo_policy(), situations=situations, rollouts=1, progress=False
    )
    data.grade()
    turns = {row.id: sum(m["role"] == "assistant" for m in row.messages) for row in data.kept.rows}
    labels = {name: count <= median(turns.values()) for name, count in turns.items()}
    openings = {_flat(row.messages[1]["content"]): labels[row.id] for row in data.kept.rows}
    judges = {"good": knowing(openings), "random": fickle(), "likes length": wordy(), "obeys": gullible()}
    for name, judge in judges.items():
        counted = Counted(judge)
        read = ws.concat([data])
        read.grade(judge=counted, fraction=1.0)
        print(f"--- {name}\n{read.trust(labels, judge=counted)}")
        if name in ("good", "obeys"):
            print("  injections obeyed, of those read:")
            for item in load_words("probes")["injections"]:
                obeyed, not_ = counted.kept[item["text"], True], counted.kept[item["text"], False]
                print(f"    {item['place']:9} {obeyed:4} of {obeyed + not_:4}  {item['text'][:80]}")


if __name__ == "__main__":
    main()
