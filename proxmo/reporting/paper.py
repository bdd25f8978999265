"""The paper's table as text, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from proxmo.evaluation.paper_table import DIFFERENCE, Row, columns, notes
from proxmo.reporting.tables import table

_ESCAPES = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$"}


def paper_text(rows: Sequence[Row]) -> Table:
    """Lay the rows out for a terminal."""
    return table(*_grid(rows), words=2)


def paper_markdown(rows: Sequence[Row]) -> str:
    """Write the rows as a Markdown table with the panels below."""
    head, body = _grid(rows)
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]
    return "\n".join([*lines, "", *(f"{note}  " for note in notes(rows))]).rstrip() + "\n"


def paper_latex(rows: Sequence[Row]) -> str:
    r"""Write the rows as a LaTeX tabular (`\usepackage{booktabs}`), the panels as comments."""
    head, body = _grid(rows)
    lines = [f"% {note}" for note in notes(rows)]
    lines += [rf"\begin{{tabular}}{{ll{'r' * (len(head) - 2)}}}", r"\toprule"]
    lines += [_latex_line(head), r"\midrule", *map(_latex_line, body)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "markdown": paper_markdown,
    "latex": paper_latex,
}


def _grid(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Returns headings and cells as texts; the last column says where the numbers are from."""
    names = columns(rows)
    body = [[row.model, row.method, *(_cell(row, n) for n in names), _source(row)] for row in rows]
    return ["model", "method", *names, "panel"], body


def _cell(row: Row, column: str) -> str:
    if column not in row.cells:
        return ""
    value, sd = row.cells[column]
    if column.endswith(DIFFERENCE):
        return f"{value:+.1f}"
    return f"{value:.1f}" if sd is None else f"{value:.1f} ± {sd:.1f}"


def _source(row: Row) -> str:
    if row.published:
        return "published"
    return " ".join(digest[:8] for _, digest in row.panels.values())


def _latex_line(cells: Sequence[str]) -> str:
    escaped = ("".join(_ESCAPES.get(letter, letter) for letter in cell) for cell in cells)
    return " & ".join(cell.replace("±", r"$\pm$") for cell in escaped) + r" \\"
