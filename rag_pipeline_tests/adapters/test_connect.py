"""Tests of which adapters the settings select, and of the errors for wrong settings."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from rag_pipeline.adapters.connect import (
    choose_provider,
    connect_catalog,
    connect_embedder,
)
from rag_pipeline.adapters.embedders.local import PUBLISHED, TEXTBOOK
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.errors import (
    ConfigurationError,
    MissingDependencyError,
    StoreUnavailableError,
)
from rag_pipeline.core.settings import EmbeddingProvider, load_settings
from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingModel, EmbeddingSpace

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-secret-0123456789abcdef"


pytestmark = pytest.mark.usefixtures("no_settings_from_outside")


def test_without_a_key_and_a_server_the_local_adapters_are_used(tmp_path: Path) -> None:
    settings = load_settings(docs_dir=tmp_path / "docs", data_dir=tmp_path / "data")
    assert connect_embedder(settings).model.provider == "local"
    catalog = connect_catalog(settings)
    assert catalog.current_id() is None
    assert not (tmp_path / "data").exists()


def test_an_openai_key_selects_text_embedding_3_small() -> None:
    model = connect_embedder(load_settings(openai_api_key=KEY)).model
    assert (model.provider, model.model, model.dim) == ("openai", "text-embedding-3-small", 1536)
    assert model.max_input_tokens == 8191


@pytest.mark.parametrize(
    ("provider", "keys", "chosen"),
    [
        ("local", {"openai_api_key": KEY}, "local"),
        ("openai", {}, "openai"),
        ("cohere", {"openai_api_key": KEY}, "cohere"),
        ("vanished", {"openai_api_key": KEY}, "openai"),
        ("vanished", {}, "local"),
    ],
)
def test_auto_is_the_provider_of_the_existing_collection(
    tmp_path: Path, provider: str, keys: dict[str, str], chosen: str
) -> None:
    settings = load_settings(docs_dir=tmp_path / "docs", data_dir=tmp_path / "data", **keys)
    catalog = connect_catalog(settings)
    store = catalog.create(EmbeddingSpace(EmbeddingModel(provider, "m", 4, 8), FORMAT_VERSION))
    store.close()
    catalog.switch_to(store.collection_id)
    assert choose_provider(settings) == chosen
    named = settings.model_copy(update={"embedding_provider": EmbeddingProvider.LOCAL})
    assert choose_provider(named) == "local"


def test_auto_never_changes_the_provider_of_a_damaged_collection(tmp_path: Path) -> None:
    settings = load_settings(docs_dir=tmp_path / "docs", data_dir=tmp_path / "data")
    catalog = connect_catalog(settings)
    store = catalog.create(EmbeddingSpace(EmbeddingModel("cohere", "m", 4, 8), FORMAT_VERSION))
    store.close()
    catalog.switch_to(store.collection_id)
    (path,) = (tmp_path / "data").rglob("space.json")
    path.write_text("{")
    assert choose_provider(settings) == "local"
    with_key = settings.model_copy(update={"openai_api_key": SecretStr(KEY)})
    with pytest.raises(ConfigurationError, match=r"set EMBEDDING_PROVIDER to the provider"):
        choose_provider(with_key)


def test_auto_is_undecided_while_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: EdgeCatalog) -> None:
        raise StoreUnavailableError("the store does not answer")

    monkeypatch.setattr(EdgeCatalog, "current_id", fail)
    folders = {"docs_dir": tmp_path / "docs", "data_dir": tmp_path / "data"}
    assert choose_provider(load_settings(**folders)) == "local"
    with pytest.raises(StoreUnavailableError):
        choose_provider(load_settings(openai_api_key=KEY, **folders))


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"model": "n"}, "set EMBEDDING_PROVIDER=openai and EMBEDDING_MODEL=m"),
        ({"dim": 8}, "set EMBEDDING_DIM=4"),
        ({"max_input_tokens": 9}, "install the release that built it"),
    ],
)
def test_the_remedy_names_the_settings_that_differ(change: dict[str, Any], remedy: str) -> None:
    stored = EmbeddingModel("openai", "m", 4, 8)
    wanted = EmbeddingSpace(replace(stored, **change), FORMAT_VERSION)
    assert EmbeddingSpace(stored, FORMAT_VERSION).name_remedy(wanted) == remedy


def test_model_and_dimension_of_another_server_are_used() -> None:
    settings = load_settings(
        embedding_provider="openai",
        openai_api_key=KEY,
        openai_base_url="http://127.0.0.1:1/v1",
        embedding_model="nomic-embed-text",
        embedding_dim=768,
    )
    model = connect_embedder(settings).model
    assert (model.model, model.dim) == ("nomic-embed-text", 768)


def test_cohere_uses_its_english_model_by_default() -> None:
    pytest.importorskip("cohere", reason="the cohere extra is not installed")
    settings = load_settings(embedding_provider="cohere", cohere_api_key=KEY)
    model = connect_embedder(settings).model
    assert (model.provider, model.model, model.dim) == ("cohere", "embed-english-v3.0", 1024)


def test_the_error_for_a_missing_cohere_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_the_error_names_the_setting_that_is_missing_or_wrong(
    settings: dict[str, object], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        connect_embedder(load_settings(**settings))
    assert caught.value.setting == named
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "used"), [("", TEXTBOOK), (TEXTBOOK, TEXTBOOK), (PUBLISHED, PUBLISHED)]
)
def test_the_setting_selects_the_local_model(asked: str, used: str) -> None:
    model = connect_embedder(load_settings(embedding_model=asked)).model
    assert model.model.startswith(f"{used}-int8-")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"qdrant_url": "localhost:6333"}, "QDRANT_URL: .* http://localhost:6333"),
        ({"qdrant_url": f"http://h:6333?api-key={KEY}"}, "QDRANT_URL"),
        ({"qdrant_url": "http://h:1", "qdrant_api_key": f"{KEY}\nx"}, "QDRANT_API_KEY"),
    ],
)
def test_the_error_names_the_wrong_qdrant_setting(settings: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as caught:
        connect_catalog(load_settings(**settings))
    assert KEY not in str(caught.value)


def test_a_qdrant_key_with_an_http_url_prints_no_warning() -> None:
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
        # The embedder loads the client only when there is text to embed.
        ("rag_pipeline.adapters.embedders.openai", ["openai"]),
    ],
)
def test_a_process_loads_only_the_client_that_it_uses(module: str, absent: list[str]) -> None:
    code = f"import sys, {module}; print(*(set({absent}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
