"""Chat completions for clients of OpenAI's API."""
