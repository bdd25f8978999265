"""A catalogue of our own: written by a generator, so that everything works without a download."""

from webshop_server.data.bundled.generator import DIFFICULTIES, VERSION, catalogue

__all__ = ["DIFFICULTIES", "VERSION", "catalogue"]
