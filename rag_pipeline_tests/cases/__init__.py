"""Case files: examples with a title, a Markdown input and the expected parsing and chunking."""
