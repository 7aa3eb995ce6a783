"""Which adapter serves which settings, and what is said where something is missing."""

from __future__ import annotations

import base64
import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.connect import connect_catalog, connect_chat_model, connect_embedder
from rag_pipeline.adapters.embedders.local import PUBLISHED, TEXTBOOK
from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError, RagPipelineError
from rag_pipeline.core.protocols.chat import ChatMessage
from rag_pipeline.core.settings import EmbeddingProvider, Settings, load_settings
from rag_pipeline_tests.loopback import Reply, serve

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-secret-0123456789abcdef"
HIDDEN = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.chdir(tmp_path)


def test_without_key_and_server_everything_is_embedded(tmp_path: Path) -> None:
    settings = load_settings(docs_dir=tmp_path / "docs", data_dir=tmp_path / "data")
    assert connect_embedder(settings).model.provider == "local"
    catalog = connect_catalog(settings)
    assert catalog.current_id() is None
    assert not (tmp_path / "data").exists()


def test_a_key_chooses_openai_s_small_model() -> None:
    model = connect_embedder(load_settings(openai_api_key=KEY)).model
    assert (model.provider, model.model, model.dim) == ("openai", "text-embedding-3-small", 1536)
    assert model.max_input_tokens == 8191


def test_model_and_dimension_of_another_server() -> None:
    settings = load_settings(
        embedding_provider="openai",
        openai_api_key=KEY,
        openai_base_url="http://127.0.0.1:1/v1",
        embedding_model="nomic-embed-text",
        embedding_dim=768,
    )
    model = connect_embedder(settings).model
    assert (model.model, model.dim) == ("nomic-embed-text", 768)


def test_cohere_s_english_model() -> None:
    pytest.importorskip("cohere", reason="the cohere extra is not installed")
    settings = load_settings(embedding_provider="cohere", cohere_api_key=KEY)
    model = connect_embedder(settings).model
    assert (model.provider, model.model, model.dim) == ("cohere", "embed-english-v3.0", 1024)


def test_a_missing_cohere_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cohere", None)
    monkeypatch.delitem(sys.modules, "rag_pipeline.adapters.embedders.cohere", raising=False)
    settings = load_settings(embedding_provider="cohere", cohere_api_key=KEY)
    with pytest.raises(MissingDependencyError, match=r"rag-pipeline\[cohere\]"):
        connect_embedder(settings)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"embedding_provider": "openai"}, "OPENAI_API_KEY"),
        ({"embedding_provider": "openai", "openai_api_key": "  "}, "OPENAI_API_KEY"),
        ({"openai_api_key": f"{KEY}\nx"}, "OPENAI_API_KEY"),
        ({"openai_api_key": f"{KEY}é"}, "OPENAI_API_KEY"),
        ({"embedding_provider": "cohere"}, "COHERE_API_KEY"),
        ({"openai_api_key": KEY, "openai_base_url": "localhost:11434"}, "OPENAI_BASE_URL"),
        ({"openai_api_key": KEY, "openai_base_url": f"http://h/v1?key={KEY}"}, "OPENAI_BASE_URL"),
        ({"openai_api_key": KEY, "openai_base_url": f"http://u:{KEY}@h:99999/"}, "OPENAI_BASE_URL"),
        ({"openai_api_key": KEY, "openai_base_url": f"http://u:{KEY}@/v1"}, "OPENAI_BASE_URL"),
        ({"openai_api_key": KEY, "embedding_model": "nomic-embed-text"}, "EMBEDDING_DIM"),
        ({"openai_api_key": KEY, "embedding_dim": 5000}, "EMBEDDING_DIM"),
        ({"embedding_model": "text-embedding-3-small"}, "EMBEDDING_MODEL"),
        ({"embedding_dim": 1536}, "EMBEDDING_DIM"),
    ],
)
def test_what_is_missing_or_wrong_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        connect_embedder(load_settings(**settings))
    assert caught.value.setting == named
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "used"), [("", TEXTBOOK), (TEXTBOOK, TEXTBOOK), (PUBLISHED, PUBLISHED)]
)
def test_the_local_model_is_the_one_asked_for(asked: str, used: str) -> None:
    model = connect_embedder(load_settings(embedding_model=asked)).model
    assert model.model.startswith(f"{used}-int8-")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"qdrant_url": "localhost:6333"}, "QDRANT_URL"),
        ({"qdrant_url": f"http://h:6333?api-key={KEY}"}, "QDRANT_URL"),
        ({"qdrant_url": "http://h:1", "qdrant_api_key": f"{KEY}\nx"}, "QDRANT_API_KEY"),
    ],
)
def test_a_server_that_cannot_be_called_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        connect_catalog(load_settings(**settings))
    assert KEY not in str(caught.value)


def test_a_key_over_http_prints_no_warning() -> None:
    connect_catalog(load_settings(qdrant_url="http://127.0.0.1:1", qdrant_api_key=KEY))


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("rag_pipeline.adapters.connect", ["openai", "cohere", "qdrant_client", "qdrant_edge"]),
        (
            "rag_pipeline.adapters.stores.edge_catalog",
            ["openai", "cohere", "qdrant_client", "fastembed"],
        ),
        ("rag_pipeline.adapters.stores.qdrant_catalog", ["openai", "cohere", "qdrant_edge"]),
        ("rag_pipeline.adapters.embedders.openai", ["openai"]),  # only once there is text to embed
    ],
)
def test_a_process_loads_only_the_client_it_uses(module: str, absent: list[str]) -> None:
    code = f"import sys, {module}; print(*(set({absent}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("service", ["chat", "openai", "cohere", "qdrant"])
def test_a_password_in_an_address_reaches_its_server_and_no_log(
    service: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serve([Reply(400)]) as server:
        url = server.url.replace("//", f"//user:{HIDDEN}@")
        with pytest.raises(RagPipelineError) as caught:
            ask_service(service, url)
    login = base64.b64encode(f"user:{HIDDEN}".encode()).decode()
    assert server.received[0].headers["authorization"] == f"Basic {login}"
    assert HIDDEN not in str(caught.value)
    assert [line for line in caplog.messages if HIDDEN in line or login in line] == []


def ask_service(service: str, url: str) -> None:
    keys = load_settings(
        openai_api_key=KEY, openai_base_url=url, cohere_api_key=KEY, cohere_base_url=url
    )
    match service:
        case "chat":
            model = connect_chat_model(keys)
            assert model is not None
            next(model.stream([ChatMessage("user", "Why?")]))
        case "qdrant":
            connect_catalog(load_settings(qdrant_url=url)).current_id()
        case _:
            if service == "cohere":
                pytest.importorskip("cohere", reason="the cohere extra is not installed")
            chosen = keys.model_copy(update={"embedding_provider": EmbeddingProvider(service)})
            connect_embedder(chosen).embed_query("Why?")
