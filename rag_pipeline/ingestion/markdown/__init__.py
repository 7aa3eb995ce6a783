"""From the text of a Markdown or MDX page to typed blocks, headings and cleaned text."""
