"""Measure the reading of policies: the corpus beside the project, case by case, and our own small cases.

Type: python tests/benchmarks/bench_clauses.py [--show CASE]

The corpus figures are fitted: its cases were read while the word lists were written. What our own cases gave at
their first run, before any mending, is summed up from tests/situations/first_sight.yaml.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from whilesim.core.text import fold
from whilesim.situations.policy import Clause, Policy, parse_policy

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared"
OWN = HERE.parent / "situations"


def bag(text: str) -> set[str]:
    """Words cut to five letters, and pairs of characters where a script has no spaces."""
    plain = fold(text)
    unspaced = "".join(re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]", plain))
    stems = {
        w[:5]
        for w in re.findall(r"[^\W_]+", re.sub(r"[\u3040-\u30ff\u4e00-\u9fff]", " ", plain))
        if len(w) > 2 or w.isdigit()
    }
    return stems | {unspaced[i : i + 2] for i in range(len(unspaced) - 1)}


def best(sample: str, clauses: tuple[Clause, ...]) -> tuple[float, str]:
    """Return the share of the sample's words in the clause that holds most of them."""
    wanted = bag(sample)
    scored = [(len(wanted & bag(f"{c.section} {c.text}")) / len(wanted), c.text) for c in clauses]
    return max(scored, default=(0.0, ""))


def kept_out(text: str, policy: Policy) -> bool:
    """Say whether the text stands in no clause's own source; headings and lead-ins do not count."""
    bare = re.sub(r"\W+", " ", fold(text)).strip()
    return not any(bare in re.sub(r"\W+", " ", fold(policy.text[slice(*c.span)])) for c in policy.clauses)


def measure_corpus(show: str) -> None:
    """Print one line per case of the corpus, and the totals."""
    inside = found = samples = out = nots = cases = 0
    print(f"{'case':42} clauses  range     samples  not_rules  hand-off (expected)  seconds")
    for folder in sorted((SHARED / "corpus").iterdir()):
        if not (folder / "policy.md").is_file() or not (folder / "expected.json").is_file():
            continue
        expected: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        begun = time.perf_counter()
        policy = parse_policy((folder / "policy.md").read_text(encoding="utf-8"))
        seconds = time.perf_counter() - begun
        low, high = expected["rule_count_min"], expected["rule_count_max"]
        scores = [(best(s, policy.clauses), s) for s in expected["sample_rules"]]
        kept = [(kept_out(n, policy), n) for n in expected["not_rules"]]
        hand = sum(c.kind == "handoff" for c in policy.clauses)
        wanted = "-".join(str(expected[k]) for k in ("handoff_rules", "handoff_rules_max") if k in expected)
        hits, clean = sum(s[0] >= 0.5 for s, _ in scores), sum(k for k, _ in kept)
        cases, inside = cases + 1, inside + (low <= len(policy.clauses) <= high)
        found, samples, out, nots = found + hits, samples + len(scores), out + clean, nots + len(kept)
        print(
            f"{folder.name:42} {len(policy.clauses):7}{' ' if low <= len(policy.clauses) <= high else '!'} {low:3}-{high:<5} "
            f"{hits:3}/{len(scores):<5} {clean:4}/{len(kept):<6} {hand:4} ({wanted or '?'}){'':14} {seconds:.2f}"
        )
        for (score, text), sample in scores:
            if score < 0.75:
                print(f"    {score:.2f} {sample!r}\n         {text!r}")
        for good, text in kept:
            if not good:
                print(f"    became a clause: {text!r}")
        if show and show in folder.name:
            print_clauses(policy)
    print(f"in range {inside}/{cases}, samples {found}/{samples}, not_rules kept out {out}/{nots}")
    for name in ("retail", "airline", "telecom", "telecom-workflow", "mock"):
        policy = parse_policy((SHARED / "tau2" / name / "policy.md").read_text(encoding="utf-8"))
        print(f"tau2 {name}: {len(policy.clauses)} clauses")
        if show and show == name:
            print_clauses(policy)


def measure_own(name: str, cases: list[dict[str, Any]], show: str) -> None:
    """Print one line for a set of our own cases, and what was missed, kept or of another kind."""
    sums: Counter[str] = Counter()
    for case in cases:
        policy = parse_policy(case["text"])
        taken: set[str] = set()
        hand = sum(c.kind == "handoff" for c in policy.clauses)
        low, high = case.get("clauses", (0, 999))
        least, most = case.get("handoffs", (0, 999))
        sums["counts"] += low <= len(policy.clauses) <= high
        sums["handoffs"] += least <= hand <= most
        for rule in case["rules"]:
            hit = next((c for c in policy.clauses if rule["has"] in c.text and c.id not in taken), None)
            kinds = [rule["kind"]] if isinstance(rule["kind"], str) else rule["kind"]
            right = hit is not None and hit.kind in kinds
            if not right:
                print(f"    {case['name']}: {rule['has']!r} ({rule['kind']}): {hit and (hit.kind, hit.text)}")
            taken |= {hit.id} if hit else set()
            sums["rules"] += 1
            sums["found"] += hit is not None
            sums["kinds"] += right
        kept = [kept_out(text, policy) for text in case["not_rules"]]
        sums["nots"] += len(kept)
        sums["out"] += sum(kept)
        if show and show in case["name"]:
            print_clauses(policy)
    print(
        f"{name:16} {len(cases):3} policies: counts {sums['counts']}, hand-offs {sums['handoffs']}, "
        f"rules {sums['found']}/{sums['rules']}, kinds {sums['kinds']}/{sums['found']}, kept out {sums['out']}/{sums['nots']}"
    )


def print_first_sight() -> None:
    """Sum up what was found of the blind policies before anything was mended for them."""
    rounds = yaml.safe_load((OWN / "first_sight.yaml").read_text(encoding="utf-8"))
    sums = {
        key: [sum(pair) for pair in zip(*(r[key] for r in rounds), strict=True)] for key in rounds[0] if key != "round"
    }
    told = ", ".join(f"{key.replace('_', ' ')} {a}/{b} ({a / b:.0%})" for key, (a, b) in sums.items())
    print(f"blind, at first sight, all {len(rounds)} rounds: {told}")


def measure_slices(count: int = 1000) -> None:
    """Read that many slices of real documents, broken off anywhere; a failure ends the run with its trace."""
    texts = [f.read_text(encoding="utf-8") for f in sorted(SHARED.glob("*/*/policy.md"))]
    for number in range(count):
        text = texts[number % len(texts)]
        start = number * 7919 % len(text)
        piece = text[start : start + 40 + number * 31 % 2000] + ["", "```\n", "<p>", "|", '"', "- ("][number % 6]
        if piece.strip():
            assert all(0 <= c.span[0] < c.span[1] <= len(piece) for c in parse_policy(piece).clauses), piece
    print(f"{count} slices of {len(texts)} real documents: no failure")


def measure_speed() -> None:
    """Print seconds of processor time for long policies."""
    deeds = ("verify the caller", "refund the order", "cancel the plan", "share the code", "send the invoice")
    rules = [
        f"{'Never' if n % 3 else 'Always'} {deeds[n % 5]} {n} when step {n * 7 % 13} costs {n} dollars."
        for n in range(1300)
    ]
    made = {
        "300 rules": "# Rules\n\n- " + "\n- ".join(rules[:300]),
        "1,300 rules in a list": "# Rules\n\n- " + "\n- ".join(rules),
        "1,300 rules in prose": " ".join(rules),
        "20,000 bullets of one letter": "- a\n" * 20000,
    }
    for name, text in made.items():
        begun = time.process_time()
        found = len(parse_policy(text).clauses)
        print(f"{name}: {len(text):,} characters, {found} clauses, {time.process_time() - begun:.2f} s of one core")


def print_clauses(policy: Policy) -> None:
    """Print every clause of a policy with its kind and section."""
    for c in policy.clauses:
        print(f"    {c.id} [{c.kind}] {c.text}   ({c.section}) {' '.join(c.tools)}")
    for note in policy.notes:
        print(f"    note: {note}")


def main() -> None:
    """Print everything; ``--show CASE`` prints the clauses of the cases whose name holds these words as well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", default="")
    show: str = parser.parse_args().show
    own = {
        name: yaml.safe_load((OWN / f"policy_{name}.yaml").read_text(encoding="utf-8")) for name in ("cases", "blind")
    }
    measure_own("first cases", own["cases"], show)
    print_first_sight()
    for number in sorted({c["round"] for c in own["blind"]}):
        measure_own(f"blind, round {number}", [c for c in own["blind"] if c["round"] == number], show)
    if SHARED.is_dir():
        measure_corpus(show)
        measure_slices()
    measure_speed()


if __name__ == "__main__":
    main()
