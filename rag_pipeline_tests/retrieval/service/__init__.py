"""Tests of the retrieval service, which protects and logs the retriever."""
