"""Ingest a Docusaurus book and answer questions about it with citations.

Layers of the package from top to bottom. A layer may import only the layers below it.

- `cli` and `definitions`: the command line and the Dagster code location. They connect the parts.
- `serving`: the service RoboTutor over HTTP and MCP. On the same level, `integrations`: retrievers
  for LangChain and LlamaIndex, and `orchestration`: Dagster assets, checks, sensors and jobs.
- `evaluation`: the golden set of questions, metrics, quality gates and reports.
- `answering`: the rules for when to answer, and answers with citations.
- `retrieval`: the library that a backend imports to search the book. On the same level,
  `ingestion`: the stages from a Markdown file to points in the vector store.
- `adapters`: the only code that calls models, services and stores.
- `core`: data classes, ids, protocols, the payload of a point, settings and errors.
"""
