"""The generators of the pages below docs/reference; scripts/write_reference.py runs them."""
