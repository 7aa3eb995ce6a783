"""One suite over every store: what it shows for one must hold for all."""
