"""Search over product texts that ranks exactly as Lucene's English BM25 does, in numpy."""

from webshop_server.search.analysis import analyse
from webshop_server.search.index import SearchIndex

__all__ = ["SearchIndex", "analyse"]
