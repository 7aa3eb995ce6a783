"""Words, sentences, tokens and lines of a text."""
