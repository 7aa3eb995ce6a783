"""Read the values that JavaScript and TypeScript modules state, without running the modules."""
