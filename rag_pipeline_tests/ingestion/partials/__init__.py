"""Tests of partials and of other files that pages import."""
