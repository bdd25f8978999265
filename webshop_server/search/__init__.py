"""Search over product texts that ranks exactly as Lucene's English BM25 does, in numpy."""

from .analysis import analyse
from .index import SearchIndex

__all__ = ["SearchIndex", "analyse"]
