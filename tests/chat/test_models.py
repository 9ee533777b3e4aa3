"""What a person types becomes a model with an address and a key, or an error before any call."""

from __future__ import annotations

from typing import Any

import pytest

from whilesim.chat.endpoint import price_of
from whilesim.chat.models import Model, resolve_model
from whilesim.core.errors import InputError

VARIABLES = (
    "OPENAI_API_KEY OPENAI_BASE_URL HF_TOKEN OLLAMA_HOST VLLM_BASE_URL VLLM_API_KEY "
    "AZURE_OPENAI_ENDPOINT AZURE_OPENAI_API_KEY ANTHROPIC_API_KEY"
)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in VARIABLES.split():
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("spec", "variables", "name", "url", "key"),
    [
        ("openai:gpt-x", {"OPENAI_API_KEY": "k1"}, "gpt-x", "https://api.openai.com/v1", "k1"),
        (
            "openai:gpt-x",
            {"OPENAI_API_KEY": "k1", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"},
            "gpt-x",
            "http://127.0.0.1:9/v1",
            "k1",
        ),
        ("hf:org/model", {"HF_TOKEN": "k2"}, "org/model", "https://router.huggingface.co/v1", "k2"),
        ("ollama:qwen3:8b", {}, "qwen3:8b", "http://127.0.0.1:11434/v1", None),
        ("ollama:m", {"OLLAMA_HOST": "0.0.0.0:1234"}, "m", "http://127.0.0.1:1234/v1", None),
        ("ollama:m", {"OLLAMA_HOST": "https://there"}, "m", "https://there/v1", None),
        ("vllm:org/model", {}, "org/model", "http://127.0.0.1:8000/v1", None),
        (
            "azure:deployed",
            {"AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/", "AZURE_OPENAI_API_KEY": "k3"},
            "deployed",
            "https://me.openai.azure.com/openai/v1",
            "k3",
        ),
        ("anthropic:claude-x", {"ANTHROPIC_API_KEY": "k4"}, "anthropic/claude-x", None, "k4"),
    ],
)
def test_a_provider_gives_the_address_and_the_key(monkeypatch, spec, variables, name, url, key):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    model = resolve_model(spec)
    assert (model.name, model.base_url, model.api_key) == (name, url, key)
    assert resolve_model(model) == model


def test_with_an_address_the_name_is_what_the_server_knows():
    model = resolve_model(Model("openai/gpt-oss-20b", base_url="http://127.0.0.1:8000/v1/chat/completions"))
    assert (model.name, model.base_url, model.api_key) == (
        "openai/gpt-oss-20b",
        "http://127.0.0.1:8000/v1",
        None,
    )


def test_a_key_of_the_environment_goes_to_its_owner_only(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert resolve_model(Model("m", base_url="http://elsewhere/v1")).api_key is None
    assert resolve_model(Model("m", base_url="https://api.openai.com/v1")).api_key == "secret"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("openai:gpt-x", "OPENAI_API_KEY is not set"),
        ("hf:org/m", "export HF_TOKEN="),
        ("anthropic:c", "ANTHROPIC_API_KEY"),
        ("gpt-x", "names no provider. Type one of openai:"),
        ("nowhere:m", "names no provider"),
        ("openai:", "names no model"),
        ("  ", "name='  ' cannot be used"),
        (Model("m", base_url="127.0.0.1:8000"), "is no URL"),
        (Model("vllm:m", timeout=0), "Type seconds above 0"),
        (Model("vllm:m", max_tokens=0), "max_tokens=0"),
        (Model("vllm:m", price=(1.0, -1.0)), "dollars per million tokens"),
        (Model("vllm:m", tool_mode="xml"), "tool_mode='xml'"),  # type: ignore[arg-type]
        (3, "a model is int"),
    ],
)
def test_what_cannot_be_asked_is_an_error_before_any_call(spec: Any, message):
    with pytest.raises(InputError, match=message):
        resolve_model(spec)


def test_azure_without_an_endpoint_says_which_variable(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    with pytest.raises(InputError, match="export AZURE_OPENAI_ENDPOINT"):
        resolve_model("azure:d")


def test_a_key_is_in_no_text_and_no_fingerprint():
    model = resolve_model(Model("m", base_url="http://host/v1", api_key="sk-secret"))
    assert "sk-secret" not in f"{model!r} {model} {model.fingerprint}"


def test_the_fingerprint_forgets_host_price_and_timeout():
    one = Model("m", base_url="http://a/v1", price=(1, 2), timeout=5)
    two = Model("m", base_url="http://b/v1")
    assert one.fingerprint == two.fingerprint
    assert one.fingerprint != Model("m", temperature=0.1).fingerprint


def test_a_price_is_the_given_one_or_the_listed_one_or_unknown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    listed = price_of(resolve_model("openai:gpt-4.1-mini"))
    assert listed is not None
    assert 0.1 < listed.tokens_in < listed.tokens_out < 10
    assert price_of(resolve_model("openai:gpt-of-tomorrow")) is None
    assert price_of(resolve_model(Model("gpt-4.1-mini", base_url="http://127.0.0.1/v1"))) is None
    given = price_of(resolve_model(Model("vllm:m", price=(0.1, 0.4))))
    assert given is not None
    assert given.of(1_000_000, 1_000_000) == pytest.approx(0.5)
