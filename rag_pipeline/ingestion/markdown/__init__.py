"""Parse the text of a Markdown or MDX page into typed blocks, headings and cleaned text."""
