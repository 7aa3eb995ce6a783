"""Turns a Docusaurus book into cited answers.

Folders, highest first; each may import those below it, siblings never:

- `cli`, `definitions`: the command and the Dagster code location; the only places that wire
  parts together
- `orchestration`: Dagster assets, checks, sensors, jobs; no algorithm
- `evaluation`: golden set, metrics, gates, reports
- `answering`: grounding policy and answers
- `retrieval`: the library a backend imports; `ingestion`: the stages from Markdown file to index
  plan
- `adapters`: the only code that talks to models, services and stores
- `core`: plain data, ids, ports, payload contract, settings, errors
"""
