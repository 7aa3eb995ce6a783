"""Reports on the answers that readers rated, and on the questions that the book did not answer."""
