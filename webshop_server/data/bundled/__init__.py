"""The built-in catalogue, which a generator writes, so that nothing has to be downloaded."""

from webshop_server.data.bundled.generator import DIFFICULTIES, VERSION, catalogue

__all__ = ["DIFFICULTIES", "VERSION", "catalogue"]
