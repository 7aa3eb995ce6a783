"""RoboTutor, the service: answers over HTTP and MCP."""

from typing import Final

MAX_QUESTION_CHARS: Final = 2_000
"""Characters of a question, whether it comes over HTTP, from a chat program or from an agent."""
