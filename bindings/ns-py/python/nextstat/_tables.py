"""Tables of results for papers and notes: LaTeX, CSV, Markdown, and data frames of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import warn
from ._nextstat import RawTable
from ._sources import document_bytes, json_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from ._sources import Document

    class HasDocument(Protocol):
        """A result."""

        def to_dict(self) -> dict[str, Any]: ...

__all__ = ["table"]


def table(
    result: HasDocument | Document,
    table: str | None = None,
    *,
    format: str = "md",
    rows: str | Sequence[str] = (),
    caption: str | None = None,
    label: str | None = None,
) -> str:
    """Returns a table of a result, or of one that was stored, without computing it again.

    The numbers are those of the document. Those of a fit that did not converge are left out, and
    what the document hides stays hidden.

    Parameters
    ----------
    result : Result, path, JSON text or dict
        A result, its `to_dict()`, or the file that a verb of the command wrote.
    table : str, optional
        Which table; the first one of the result if not given. A fit has ``"parameters"``,
        ``"correlation"`` and ``"covariance"``; yields have ``"yields"``, ``"prefit"``,
        ``"postfit"`` and ``"bins"``; a report has both and ``"pulls"``; a ranking has
        ``"ranking"``, ``"groups"`` and ``"breakdown"``.
    format : ``"md"``, ``"latex"`` or ``"csv"``
        LaTeX is for the packages booktabs, graphicx and siunitx. It and Markdown are rounded by the
        rule of the Particle Data Group; CSV has all digits.
    rows : str or sequence of str
        Only rows with these names or with names that match these patterns (``"k_*"``), and of a
        matrix such columns.
    caption, label : str, optional
        Instead of ours; the caption as the format has it.

    Returns
    -------
    str

    Warns
    -----
    NextstatWarning
        If a fit of a stored result did not converge.

    Examples
    --------
    >>> import nextstat
    >>> fit = nextstat.fit(nextstat.load_workspace("examples/simple.json"))
    >>> print(nextstat.table(fit, rows="mu", caption="The signal."))
    The signal.
    <BLANKLINE>
    | parameter | best fit |
    | :-- | --: |
    | mu | 0.7 ± 0.6 |
    <BLANKLINE>
    - nextstat ..., workspace with SHA-256 digest 0c1184a88b0e...
    <BLANKLINE>
    """
    made = _raw(result, table, rows, caption, label)
    # A result has warned when it was made.
    if made.alarm is not None and not hasattr(result, "to_dict"):
        warn(made.alarm)
    return made.text(format)


def data_frame(result: HasDocument | Document, table: str | None, rows: str | Sequence[str]) -> Any:
    """Returns a table as a `pandas.DataFrame`."""
    try:
        import pandas
    except ImportError as reason:
        raise ImportError(f"a data frame needs pandas: `pip install pandas` ({reason})") from None
    columns = _raw(result, table, rows, None, None).columns()
    # Names of columns may occur twice.
    frame = pandas.DataFrame({i: values for i, (_, values) in enumerate(columns)})
    for i, (_, values) in enumerate(columns):
        if not any(isinstance(value, str) for value in values):
            frame[i] = frame[i].astype(float)
    frame.columns = [name for name, _ in columns]
    return frame


def _raw(result, table, rows, caption, label):
    from ._arguments import names, text

    for name, value in (("table", table), ("caption", caption), ("label", label)):
        if value is not None:
            text(name, value)
    found = json_bytes(result.to_dict()) if hasattr(result, "to_dict") else document_bytes(result)
    return RawTable(found, table, names("rows", rows), caption, label)
