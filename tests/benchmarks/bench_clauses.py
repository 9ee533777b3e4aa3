"""Measure the reading of policies: the corpus beside the project, case by case, and our own small cases.

Type: python tests/benchmarks/bench_clauses.py [--show CASE] [--own]
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import yaml

from whilesim.core.text import fold
from whilesim.situations.policy import Clause, Policy, parse_policy

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared"
OWN = HERE.parent / "situations" / "policy_cases.yaml"


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


def measure_own(show: str) -> None:
    """Print what of our own small cases was found, kept out and of the right kind."""
    found = rules = kinds = out = nots = 0
    for case in yaml.safe_load(OWN.read_text(encoding="utf-8")):
        policy = parse_policy(case["text"])
        taken: set[str] = set()
        for rule in case["rules"]:
            rules += 1
            hit = next((c for c in policy.clauses if rule["has"] in c.text and c.id not in taken), None)
            if hit is None:
                print(f"    {case['name']}: missed {rule['has']!r}")
                continue
            taken.add(hit.id)
            found += 1
            kinds += hit.kind == rule["kind"]
            if hit.kind != rule["kind"]:
                print(f"    {case['name']}: {hit.kind}, expected {rule['kind']}: {hit.text!r}")
        for text in case["not_rules"]:
            nots += 1
            out += kept_out(text, policy)
            if not kept_out(text, policy):
                print(f"    {case['name']}: became a clause: {text!r}")
        print(f"{case['name']}: {len(policy.clauses)} clauses, {len(case['rules'])} expected")
        if show and show in case["name"]:
            print_clauses(policy)
    print(f"own cases: rules {found}/{rules}, kinds {kinds}/{found}, kept out {out}/{nots}")


def print_clauses(policy: Policy) -> None:
    """Print every clause of a policy with its kind and section."""
    for c in policy.clauses:
        print(f"    {c.id} [{c.kind}] {c.text}   ({c.section}) {' '.join(c.tools)}")
    for note in policy.notes:
        print(f"    note: {note}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", default="")
    parser.add_argument("--own", action="store_true")
    options = parser.parse_args()
    if options.own or not SHARED.is_dir():
        measure_own(options.show)
    else:
        measure_corpus(options.show)
