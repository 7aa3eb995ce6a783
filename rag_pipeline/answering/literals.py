r"""Code and formulas in Markdown: brackets and full stops in them cite nothing and end nothing.

A formula in `$` follows Pandoc's rule, so that the prices in "$5 and $10" are none: no blank behind
the opening mark or before the closing one, no digit behind it, all on one line. One in `$$` may
have several lines, but no blank one.
"""

from __future__ import annotations

from typing import Final

CODE_SPAN: Final = r"(?P<ticks>`++)[^\n]+?(?<!`)(?P=ticks)(?!`)"
DISPLAYED: Final = r"\$\$(?:(?!\$\$|\n[ \t\r]*\n).)++\$\$"
INLINE_FORMULA: Final = r"\$(?![\s$])(?:\\[^\n]|[^\\$\n])++(?<!\s)\$(?!\d)"

STILL_OPEN: Final = (
    r"`{1,2}(?!`)[^\n]*\Z"
    r"|\$\$(?:(?!\$\$|\n[ \t\r]*\n).)*+\Z"
    r"|\$(?![\s$])(?:\\[^\n]|[^\\$\n])*+\\?\Z"
)
"""Beginnings of the three that what follows may close."""

NO_MARK: Final = r"\\[\\$`]?|`++|\$++"
"""What marks nothing, tried last: escaped marks and runs of them that nothing closes."""
