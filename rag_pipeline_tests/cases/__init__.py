"""Case files: title, input and expected output of parsing and chunking."""
