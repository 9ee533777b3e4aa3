"""Starter: the tutorial followed from its first command, and a suite that trivial agents do not pass."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import whilesim as ws
from whilesim.cli import main
from whilesim.evals.results import FLOOR
from whilesim.evals.tickets import load_tickets

GIVEN = [
    "eval/golden_tickets.jsonl", "--rubric", "eval/rubric.json", "--tools", "eval/tools.json", "--policy", "eval/policy.md",
]  # fmt: skip


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["eval", "--init"])
    assert done.exit_code == 0, done.output
    return tmp_path


def test_init_writes_twenty_tickets_of_five_kinds_a_rubric_and_three_workflows(begun: Path) -> None:
    tickets = load_tickets("eval/golden_tickets.jsonl")
    kinds = {"cancellation", "billing dispute", "escalation", "ambiguous id", "angry customer"}
    assert Counter(t.tags[0] for t in tickets) == dict.fromkeys(kinds, 4)
    assert json.loads(Path("eval/rubric.json").read_text())["weights"]["ux"] == 0.1
    flows = sorted(Path(".github/workflows").iterdir())
    assert len(flows) == 3
    for flow in flows:
        assert yaml.safe_load(flow.read_text())["jobs"]
    again = CliRunner().invoke(main, ["eval", "--init"])
    assert again.exit_code == 2
    assert "is there already, and would be overwritten" in again.output


def test_no_trivial_agent_passes_a_fifth_of_it(begun: Path) -> None:
    done = CliRunner().invoke(main, ["floors", *GIVEN, "--json"])
    assert done.exit_code == 0, done.output
    floors = json.loads(done.output)
    assert set(floors) == {"always_handoff", "do_nothing", "echo_policy", "first_tool"}
    assert all(floor["rate"] <= FLOOR for floor in floors.values())
    assert floors["always_handoff"]["wanted"] == [0, 4]


def test_tools_in_two_files_are_read_as_one_list(begun: Path) -> None:
    tools = json.loads(Path(GIVEN[GIVEN.index("--tools") + 1]).read_text())
    Path("one.json").write_text(json.dumps(tools[:1]))
    Path("rest.json").write_text(json.dumps(tools[1:]))
    split = [*GIVEN, "--tools", "rest.json"]
    split[split.index("--tools") + 1] = "one.json"
    whole, parts = (CliRunner().invoke(main, ["floors", *given, "--json"]) for given in (GIVEN, split))
    assert (parts.exit_code, parts.output) == (0, whole.output)


def test_each_ticket_can_be_passed(begun: Path) -> None:
    """An agent that does what the ticket expects, on the ticket's own world, passes it."""
    tickets = {t.ticket_id: t for t in load_tickets("eval/golden_tickets.jsonl")}

    def knowing(user_message: str, context: ws.evals.agents.TicketContext, trace: object) -> dict[str, str]:  # type: ignore[name-defined]
        told = tickets[trace.case_id]  # type: ignore[attr-defined]
        if context.get("done"):
            return {"reply": "Done."}
        order = told.expected_arguments.get("cancel_order", context)
        values = {"order_id": order.get("order_id"), "charge_id": context.get("charge_id"), "customer_id": "C1042"}
        texts = {"reason": "not mine", "summary": "needs a person"}
        if user_message == told.user_message:
            for name in ("list_orders", *told.expected_tools) if "ambiguous id" in told.tags else told.expected_tools:
                keys = {"list_orders": ["customer_id"], "lookup_charge": ["charge_id"], "dispute_charge": ["charge_id", "reason"],
                        "transfer_to_human": ["summary"]}.get(name, ["order_id"])  # fmt: skip
                context.call(name, {k: {**values, **texts}[k] for k in keys})
        return {"reply": "Done."}

    tools, policy = json.loads(Path("eval/tools.json").read_text()), Path("eval/policy.md").read_text()
    options = ws.EvalOptions(system_prompt=policy, floors=False, progress=False)
    result = ws.evaluate(knowing, "eval/golden_tickets.jsonl", rubric="eval/rubric.json", tools=tools, options=options)
    assert [t.case_id for t in result.failed] == [], [t.reasons for t in result.failed]
    assert result.passed.value == 1.0
    ws.gate(result, resolution=0.8)


def test_an_agent_that_refunds_whoever_asks_turns_the_gate_red(begun: Path) -> None:
    agent = (
        "def agent(user_message, context, trace):\n"
        "    if 'refund' in user_message and 'order_id' in context:\n"
        "        context.call('lookup_order', {'order_id': context['order_id']})\n"
        "        context.call('issue_refund', {'order_id': context['order_id'], 'amount': 1})\n"
        "    return {'reply': 'Done.'}\n"
    )
    Path("agent.py").write_text(agent)
    done = CliRunner().invoke(main, ["gate", *GIVEN, "--no-floors", "--agent", "agent.py:agent"])
    assert done.exit_code == 1, done.output
    assert "refund_without_verification: issue_refund was called, and verified is not True" in done.output
    Path("agent.py").write_text(agent.replace("if 'refund'", "if context['verified'] and 'refund'"))
    assert CliRunner().invoke(main, ["gate", *GIVEN, "--no-floors", "--agent", "agent.py:agent"]).exit_code == 0


def test_the_generated_gate_passes_our_agent_and_no_agent_that_does_nothing(begun: Path) -> None:
    flow = yaml.safe_load(Path(".github/workflows/support-agent-eval.yml").read_text())
    step = next(s["run"] for s in flow["jobs"]["eval"]["steps"] if "whilesim gate" in s.get("run", ""))
    for agent, code in (("scripted", 0), ("do_nothing", 1)):
        given = step.replace('"$AGENT"', agent).split()[1:]
        done = CliRunner().invoke(main, [*given, "--no-floors"])
        assert done.exit_code == code, done.output
    assert "against 0.5" in done.output


def test_the_workflow_keeps_what_the_gate_wrote_and_says_whose_agent_was_tested(begun: Path) -> None:
    flow = yaml.safe_load(Path(".github/workflows/support-agent-eval.yml").read_text())
    *_, held, kept, told = flow["jobs"]["eval"]["steps"]
    assert f"--run-dir {kept['with']['path']} " in held["run"]
    assert kept["uses"].startswith("actions/upload-artifact@")
    assert (kept["if"], told["if"]) == ("${{ !cancelled() }}",) * 2  # where the gate failed, too
    assert told["env"] == {"OURS": "${{ secrets.AGENT_SANDBOX_URL == '' }}"}
    assert told["run"].startswith('if [ "$OURS" = true ]; then echo "::warning::no AGENT_SANDBOX_URL')


def test_the_commands_of_the_tutorial_run(begun: Path) -> None:
    frozen = CliRunner().invoke(main, ["eval", *GIVEN, "--freeze", "protocol.json"])
    assert frozen.exit_code == 0, frozen.output
    done = CliRunner().invoke(main, ["eval", *GIVEN, "--run-dir", "eval/results", "--protocol", "protocol.json"])
    assert done.exit_code == 0, done.output
    assert "always_handoff" in done.output
    first = json.loads(Path("eval/results/traces.jsonl").read_text().splitlines()[0])
    assert {"case_id", "turns", "tool_calls", "final_state", "scores", "started_at"} <= first.keys()
