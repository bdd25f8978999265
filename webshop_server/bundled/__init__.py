"""A catalogue of our own: written by a generator, so that everything works without a download."""

from .generator import DIFFICULTIES, VERSION, catalogue

__all__ = ["DIFFICULTIES", "VERSION", "catalogue"]
