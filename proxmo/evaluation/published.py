"""Success and scores as published in arXiv 2602.19225, table 1, in percent (score: of 100)."""

from __future__ import annotations

_SMALL, _LARGE = "Qwen2.5-1.5B-Instruct", "Qwen2.5-7B-Instruct"
# Columns of the two worlds as their descriptions call them; "-": not at hand.
_COLUMNS = "Pick Look Clean Heat Cool Pick2 All Score Succ."
_FIGURES = {
    ("GPT-4o", "direct"): "- - - - - - 48.0 31.8 23.7",
    ("Gemini-2.5-Pro", "direct"): "- - - - - - 60.3 42.5 35.9",
    (_SMALL, "direct"): "- - - - - - 4.1 25.1 6.3",
    (_SMALL, "react"): "- - - - - - 12.8 42.1 14.3",
    (_SMALL, "reflexion"): "- - - - - - 23.5 58.6 23.5",
    (_SMALL, "grpo"): "80.0 50.0 75.0 88.9 63.2 50.0 70.3 73.1 52.2",
    (_SMALL, "gigpo"): "95.3 80.2 92.9 92.7 70.6 78.5 85.2 81.7 62.3",
    (_SMALL, "proxmo"): "94.3 92.9 89.3 92.2 89.5 87.0 90.6 85.3 67.1",
    (_LARGE, "direct"): "- - - - - - 16.2 25.1 8.4",
    (_LARGE, "react"): "- - - - - - 29.8 47.8 21.0",
    (_LARGE, "reflexion"): "- - - - - - 44.1 56.3 30.2",
    (_LARGE, "grpo"): "90.7 66.2 94.1 91.2 78.9 70.5 79.8 79.2 67.2",
    (_LARGE, "gigpo"): "97.5 81.3 88.5 85.7 90.0 83.5 89.5 85.5 74.8",
    (_LARGE, "proxmo"): "98.4 88.6 95.7 93.8 91.3 89.8 94.5 87.2 76.5",
}
# By (model, method): column to figure.
PUBLISHED = {
    who: {c: float(f) for c, f in zip(_COLUMNS.split(), row.split(), strict=True) if f != "-"}
    for who, row in _FIGURES.items()
}
