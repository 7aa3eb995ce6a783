"""The only code that talks to models, services and stores: each module implements a Protocol of
core.protocols.
"""
