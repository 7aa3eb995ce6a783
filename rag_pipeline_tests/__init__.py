"""Tests of the package. The folders have the same names as the folders of the package."""
