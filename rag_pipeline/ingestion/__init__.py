"""The stages from Markdown file to index plan: pure functions, services only as Protocols of
core.protocols.
"""
