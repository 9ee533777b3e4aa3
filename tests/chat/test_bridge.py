"""litellm: not loaded unless it is needed, and quiet when it is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from stub import Stub, refuse

from whilesim.chat.bridge import find_price
from whilesim.chat.endpoint import Endpoint, price_of
from whilesim.chat.loop import run
from whilesim.chat.messages import Message
from whilesim.chat.models import Model, resolve_model
from whilesim.core.errors import InputError, ModelError

TOOLS = ({"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}},)


def test_neither_litellm_nor_openai_is_loaded_for_a_price_or_an_endpoint():
    code = (
        "import sys, os; os.environ['OPENAI_API_KEY'] = 'k';"
        "from whilesim.chat.endpoint import Endpoint;"
        "chat = Endpoint('openai:gpt-4.1-mini'); assert chat.price;"
        "print([m for m in ('litellm', 'openai', 'datasets', 'torch') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_model_that_is_not_listed_has_no_price():
    assert find_price("no-such-model-anywhere") is None


@pytest.fixture(scope="module")
def litellm():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own imports warn
        from whilesim.chat.bridge import load_litellm

        return load_litellm()


@pytest.mark.usefixtures("litellm")
@pytest.mark.filterwarnings("ignore")  # what litellm does inside is not ours to mend
class TestThroughLitellm:
    def ask(self, stub, **model):
        async def once():
            chat = Endpoint(Model("hosted_vllm/NAME", base_url=stub.url, **model))
            try:
                return await chat.reply([Message(role="user", content="Hello")], TOOLS)
            finally:
                await chat.close()

        return run(once())

    def test_a_hosted_vllm_model_is_asked_by_its_name(self, capfd):
        with Stub(plan=[refuse(429), refuse(500)]) as stub:
            reply = self.ask(stub, temperature=0.1)
        assert reply.message.tool_calls[0].name == "look_up"
        assert reply.usage.tokens_out == 12
        assert [b["model"] for b in stub.bodies] == ["NAME"] * 3
        assert stub.bodies[0]["temperature"] == 0.1
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize(
        ("status", "text", "reason"),
        [
            (400, "maximum context length is 5", "context_window"),
            (401, "no", "auth"),
            (400, "unknown field", "bad_request"),
        ],
    )
    def test_its_errors_have_our_reasons_and_are_not_tried_again(self, status, text, reason):
        with Stub(plan=lambda *_: refuse(status, text)) as stub, pytest.raises(ModelError) as failed:
            self.ask(stub, api_key="sk-secret-key")
        assert failed.value.reason == reason
        assert "sk-secret-key" not in str(failed.value)
        assert stub.count == 1

    def test_a_name_that_it_does_not_know_is_an_error_before_any_call(self):
        with pytest.raises(InputError, match="no provider is known for the model 'nobody/m'"):
            resolve_model("nobody/m")

    def test_a_missing_key_is_an_error_before_any_call(self, monkeypatch):
        monkeypatch.delenv("GROQ_API_KEY", raising=False)
        with pytest.raises(InputError, match="export GROQ_API_KEY"):
            resolve_model("groq/llama-3.3-70b-versatile")

    def test_a_listed_model_has_a_price(self, monkeypatch):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        price = price_of(resolve_model("anthropic:claude-sonnet-4-5"))
        assert price is not None
        assert price.tokens_in < price.tokens_out
