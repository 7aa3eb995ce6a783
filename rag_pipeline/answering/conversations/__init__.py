"""Conversations: which earlier turns count, and what a follow-up question means on its own."""
