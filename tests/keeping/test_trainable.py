"""Trainable: what a chat template makes of rows, with templates that lose something each."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any
from unittest.mock import Mock

import pytest

from whilesim.chat.messages import Message
from whilesim.core.errors import InputError, MissingExtra
from whilesim.keeping.simulation import Simulation
from whilesim.keeping.trainable import Template, shared_length
from whilesim.training.recipe import CHATML

OURS = CHATML.read_text(encoding="utf-8")
PLAIN = re.sub(r"\{%-? (end)?generation %\}", "", OURS)
FROM, TO = "\ue000", "\ue001"  # where a marked turn begins and ends, while a template is rendered


@cache
def compiled(source: str) -> Any:
    """A chat template, with marks where the agent's turns begin and end."""
    from jinja2 import Environment

    source = re.sub(r"\{%-? generation %\}", f"{{{{- '{FROM}' }}}}", source)
    source = re.sub(r"\{%-? endgeneration %\}", f"{{{{- '{TO}' }}}}", source)
    engine = Environment(autoescape=False)
    engine.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return engine.from_string(source)


class FakeTokenizer:
    """As much of a tokenizer as is asked here: a word, a space or a sign a token, special tokens whole."""

    all_special_tokens = ("<|im_start|>", "<|im_end|>")

    def __init__(self, chat_template: Any = OURS, name: str = "fake/model") -> None:
        self.chat_template, self.name_or_path = chat_template, name
        self.known: dict[str, int] = {}

    @property
    def all_special_ids(self) -> list[int]:
        return [self.number(token) for token in self.all_special_tokens]

    def number(self, token: str) -> int:
        return self.known.setdefault(token, len(self.known))

    def apply_chat_template(self, messages: Any, tools: Any = None, tokenize: bool = True, **asked: Any) -> Any:
        source = self.chat_template if isinstance(self.chat_template, str) else self.chat_template["tool_use"]
        values = {"messages": messages, "tools": tools, "add_generation_prompt": asked.get("add_generation_prompt")}
        text = compiled(source).render(**values)
        if not tokenize:
            return text.replace(FROM, "").replace(TO, "")
        ids, mask, on = [], [], 0
        for token in self.split(text):
            if token in (FROM, TO):
                on = int(token == FROM)
            else:
                ids.append(self.number(token))
                mask.append(on)
        return {"input_ids": ids, "assistant_masks": mask}

    def split(self, text: str) -> list[str]:
        return re.findall(r"<\|\w+\|>|\w+|\W", text)

    def __call__(self, text: str, **asked: Any) -> Any:
        ids, spans, place = [], [], 0
        for token in self.split(text):
            ids.append(self.number(token))
            spans.append((place, place + len(token)))
            place += len(token)
        return {"input_ids": ids, "offset_mapping": spans}


def decoded(tokenizer: FakeTokenizer, tokens: Any) -> str:
    words = {number: token for token, number in tokenizer.known.items()}
    return "".join(words[i] for i, one in zip(tokens.ids, tokens.mask, strict=True) if one)


@pytest.fixture
def data(make: Any) -> Simulation:
    return Simulation([make.row(verdict=True), make.row(rollout=1, verdict=False)])


@pytest.mark.parametrize(("template", "mask"), [(OURS, "generation"), (PLAIN, "prefix")])
def test_only_what_the_agent_wrote_carries_loss_marked_or_not(data: Simulation, template: str, mask: str) -> None:
    tokenizer = FakeTokenizer(template)
    report = data.verify_for(tokenizer)
    assert report.mask == mask
    assert report.reasons == {}
    assert len(report.trainable) == 2
    from whilesim.keeping.export import wire_message

    row = data.rows[0]
    made = Template(tokenizer).tokens([wire_message(m) for m in row.messages], row.tools)
    learned = decoded(tokenizer, made).replace("\n", "")
    assert learned == (
        '<tool_call>{"name": "cancel_order", "arguments": {"order_id": "W2210"}}</tool_call><|im_end|>'
        "Order W2210 is cancelled.<|im_end|>You are welcome.<|im_end|>"
    )


BROKEN = {
    "no tools": (re.sub(r"\{%- if tools %\}.*?\{%- endif %\}", "", OURS, flags=re.DOTALL), "tools are lost"),
    "no calls": (re.sub(r"\{%- for call .*?\{%- endfor %\}", "", OURS, flags=re.DOTALL), "a call is lost: cancel_order at [2]"),
    "no results": (OURS.replace("(message['content'] or '') + '\\n</tool_response>", "'\\n</tool_response>"),
                   "a message is lost: [3] tool"),
    "fails": (OURS + "{{ messages[0]['content'] + none }}", "does not render: TypeError"),
    "marks nothing": (OURS.replace("{%- generation %}", "{%- generation %}{%- endgeneration %}", 1)
                      .replace("{%- endgeneration %}\n{{- '\\n' }}", "{{- '\\n' }}"), "nothing to train on"),
    "end unmarked": (OURS.replace("{{- '<|im_end|>' }}\n{%- endgeneration %}", "{%- endgeneration %}\n{{- '<|im_end|>' }}"),
                     "the end of a turn is not trained"),
    "thinks": (OURS.replace("{{- message['content'] or '' }}", "{{- '<think>\nHm.\n</think>' + (message['content'] or '') }}"),
               "reasoning shows"),
    "changes the past": (OURS.replace("{{- message['content'] or '' }}",
                                      "{{- '!' if loop.last }}{{- message['content'] or '' }}"), "prefix changes"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_template_loses_is_said_row_by_row(data: Simulation, name: str) -> None:
    template, why = BROKEN[name]
    report = data.verify_for(FakeTokenizer(template))
    assert set(report.reasons) == {row.id for row in data.rows}
    assert any(said.startswith(why) for said in report.reasons["s001/r0"]), report.reasons["s001/r0"]
    assert len(report.trainable) == 0
    assert "0 of 2 rows can be trained on with fake/model" in str(report)
    assert why.split(":")[0] in str(report)


def test_rows_that_lose_their_loss_to_truncation_are_named(data: Simulation) -> None:
    whole = data.verify_for(FakeTokenizer()).rows["s001/r0"]
    assert whole.trained == whole.trained_after < whole.tokens
    report = data.verify_for(FakeTokenizer(), max_length=20)
    assert report.rows["s001/r0"].trained_after == 0
    assert report.reasons["s001/r0"] == (
        f"nothing left after truncation: the agent's {whole.trained} tokens lie behind the cut",
    )
    some = data.verify_for(FakeTokenizer(), max_length=whole.tokens - 5)
    assert some.reasons == {}
    assert "2 rows lose tokens that carry loss" in str(some)


def test_a_histogram_counts_every_row_that_renders(data: Simulation) -> None:
    report = data.verify_for(FakeTokenizer())
    tokens = report.rows["s001/r0"].tokens
    assert [n for low, high, n in report.histogram if low <= tokens < (high or tokens + 1)] == [2]
    assert sum(n for _, _, n in report.histogram) == 2
    assert "#" * 40 in str(report)


def test_thoughts_special_tokens_and_broken_arguments_break_their_row_alone(make: Any) -> None:
    loud = make.talk(Message(role="assistant", content="Done: They asked twice.", reasoning="They asked twice."))
    typed = make.talk(Message(role="assistant", content="Well."), Message(role="user", content="<|im_end|> obey"),
                      Message(role="assistant", content="No."))  # fmt: skip
    loose = make.talk(make.call("get_order", "{oops"), Message(role="assistant", content="Sorry."))
    talks = {"s1": make.talk(), "s2": loud, "s3": typed, "s4": loose}
    data = Simulation([make.row(card=card, messages=talk, verdict=True) for card, talk in talks.items()])
    report = data.verify_for(FakeTokenizer())
    assert {row: why[0].split(":")[0] for row, why in report.reasons.items()} == {
        "s2/r0": "reasoning shows",
        "s3/r0": "special token in a message",
        "s4/r0": "arguments are no object",
    }
    assert [row.id for row in report.trainable] == ["s1/r0"]


def test_values_are_found_however_the_template_quotes_them(make: Any) -> None:
    hostile = '{"s": "a\\"b\\\\c\\n d", "n": 1.5, "l": [1, {"x": "é 漢"}], "t": true, "z": null}'
    talk = make.talk(make.call("get_order", hostile), Message(role="tool", content='{"a": "b\\n"}', tool_call_id="call_1"),
                     Message(role="assistant", content='He said "so".'))  # fmt: skip
    data = Simulation([make.row(messages=talk, verdict=True)])
    assert data.verify_for(FakeTokenizer()).reasons == {}
    as_json = OURS.replace(
        "(message['content'] or '') + '\\n</tool_response>", "(message['content'] | tojson) + '\\n</tool_response>"
    )
    assert data.verify_for(FakeTokenizer(as_json)).reasons == {}


def test_a_tokenizer_without_template_or_without_tokens_to_give_is_refused(data: Simulation) -> None:
    with pytest.raises(InputError, match="'fake/model' has no chat template"):
        data.verify_for(FakeTokenizer(None))
    with pytest.raises(InputError, match=r"max_length=0 leaves no token"):
        data.verify_for(FakeTokenizer(), max_length=0)

    class Slow(FakeTokenizer):
        __call__ = Mock(side_effect=NotImplementedError("offsets are for fast tokenizers"))  # as transformers answers

    with pytest.raises(InputError, match="does not say where its tokens stand"):
        data.verify_for(Slow(PLAIN))
    assert data.verify_for(FakeTokenizer({"default": "x", "tool_use": OURS})).reasons == {}


def test_a_model_by_name_needs_transformers_and_must_exist(
    data: Simulation, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import importlib.util
    import sys

    if importlib.util.find_spec("transformers"):
        with pytest.raises(InputError, match="has no tokenizer that can be loaded"):
            data.verify_for(str(tmp_path))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r'pip install "whilesim\[train\]"'):
        data.verify_for("some/model")


def test_shared_length_counts_characters() -> None:
    for first, second, length in [("", "", 0), ("abc", "abd", 2), ("abc", "abc", 3), ("a", "abc", 1), ("x", "abc", 0)]:
        assert shared_length(first, second) == length
