"""Files that a page shows: partials, which it imports as Markdown, and files imported as code."""
