"""White space at the ends of a text that comes in pieces."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TrimmedText:
    """Lets a text through without the white space at its ends.

    White space is held back until something else follows it.
    """

    _shown: list[str] = field(default_factory=list)
    _held: str = ""

    @property
    def text(self) -> str:
        """All that was let through."""
        return "".join(self._shown)

    def feed(self, piece: str) -> str:
        """Take a piece and return what can be shown."""
        if not piece.strip():
            self._held += piece
            return ""
        whole = self._held + piece if self._shown else piece.lstrip()
        shown = whole.rstrip()
        self._held = whole[len(shown) :]
        self._shown.append(shown)
        return shown
