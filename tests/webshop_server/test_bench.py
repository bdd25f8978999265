from __future__ import annotations

from pathlib import Path

import numpy as np

from webshop_server.bench import synthetic_documents, write_raw
from webshop_server.data.raw import read_catalogue


def test_made_up_files_have_what_costs_time(tmp_path: Path):
    write_raw(tmp_path, 1100)
    catalogue = read_catalogue(tmp_path)
    assert len(catalogue) == 1100
    assert 50 < sum(len(product.pricing) == 2 for product in catalogue) < 200
    assert 400 < sum(bool(product.options) for product in catalogue) < 700
    lengths = [len(document.split()) for document in catalogue.documents()]
    assert 30 < np.mean(lengths) < 60
    documents = list(synthetic_documents(1100))
    assert len(documents) == 1100
    assert all(map(str.startswith, catalogue.documents(), map(str.lower, documents[:1])))
