"""The limits and models of an embedding provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form in which a model expects its texts.

    Attributes:
        max_tokens: Largest number of tokens in one text. 0 for the provider's limit.
        query_prefix: Text before each question, such as `query: `.
        document_prefix: Text before each text to be found, such as `passage: `.
    """

    max_tokens: int = 0
    query_prefix: str = ""
    document_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Provider:
    """An embedding provider: its models, and the limits of one request.

    Attributes:
        name: Name of the provider, as in EMBEDDING_PROVIDER.
        kind: Kind of service in messages, such as "an embedding service".
        default_model: Model that is used if EMBEDDING_MODEL is empty.
        default_url: URL that is used if the URL setting is empty.
        dims: Full dimension of each model, by model name.
        shortenable: Names of the models that can return fewer dimensions.
        max_input_tokens: Largest number of tokens in one text.
        max_request_texts: Largest number of texts in one request.
        max_request_tokens: Largest number of tokens in one request.
        transient_statuses: HTTP statuses below 500 after which a request is retried.
    """

    name: str
    kind: str
    default_model: str
    default_url: str
    dims: Mapping[str, int]
    shortenable: tuple[str, ...]
    max_input_tokens: int
    max_request_texts: int
    max_request_tokens: int
    transient_statuses: frozenset[int]

    def choose_dim(self, model: str, dim: int) -> int:
        """Return the dimension of the vectors that a model is to return.

        Args:
            model: Name of the model.
            dim: Value of EMBEDDING_DIM; 0 for the model's full dimension.

        Raises:
            ConfigurationError: The model cannot return this dimension, or `dim` is 0 and the
                model's dimension is not known.
        """
        own = self.dims.get(model, dim)
        if own == 0:
            problem = f"the dimension of model {model} is not known"
            remedy = "Set it to the length of the model's vectors"
            raise ConfigurationError("EMBEDDING_DIM", problem, remedy)
        if dim > own or (0 < dim < own and model not in self.shortenable):
            problem = f"model {model} has {own} dimensions, not {dim}"
            raise ConfigurationError("EMBEDDING_DIM", problem, f"Set it to {own}, or to 0")
        return dim or own
