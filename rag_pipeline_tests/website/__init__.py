"""Tests of the textbook's pages. None of them needs Node; the built site has its own tests."""
