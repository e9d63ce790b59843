"""Estimate the tokens of text, images and documents."""
