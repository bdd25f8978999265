"""Lucene's English analysis: what becomes of a text before it is indexed or searched."""

from __future__ import annotations


def analyse(text: str) -> list[str]:
    """Return the terms of a text, in order, repeats kept."""
    raise NotImplementedError
