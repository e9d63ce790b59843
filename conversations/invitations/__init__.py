"""Invitations: links with which people make their accounts."""
