"""Data classes, ids, protocols, errors and settings that all other folders share.

This folder imports no other folder of the package.
"""
