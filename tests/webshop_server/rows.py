"""Raw files as the original's, with products of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def row(asin: str = "B000000001", **changes: Any) -> dict[str, Any]:
    """A row of the file of products; None takes a field away."""
    whole = {
        "asin": asin,
        "name": "Blue Wool Scarf",
        "category": "fashion",
        "query": "Scarves ",
        "product_category": "Clothing › Women › Scarves",
        "full_description": "A warm scarf.",
        "small_description": ["Soft wool", "Hand wash"],
        "images": ["https://example.org/a.jpg"],
        "pricing": "$12.99",
        "customization_options": {
            "Color": [{"value": " Navy/White ", "image": "https://example.org/b.jpg"}],
            "Size": [{"value": "Large"}, {"value": "Small"}],
        },
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


def wish(*attributes: str) -> dict[str, Any]:
    """What the file of attributes holds of a product."""
    return {
        "attributes": list(attributes),
        "instruction": f"Find me a scarf of {' and '.join(attributes)}",
        "instruction_attributes": list(attributes),
    }


def write(
    directory: Path,
    rows: list[Any],
    attributes: dict[str, Any] | None = None,
    human: dict[str, Any] | None = None,
) -> Path:
    """Write raw files, products one a line; every product gets a wish for soft wool by default."""
    if attributes is None:
        attributes = {str(one.get("asin")): wish("soft wool") for one in rows}
    directory.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(one) for one in rows)
    (directory / "items_shuffle.json").write_text(f"[\n{lines}\n]")
    (directory / "items_ins_v2.json").write_text(json.dumps(attributes))
    if human is not None:
        (directory / "items_human_ins.json").write_text(json.dumps(human))
    return directory
