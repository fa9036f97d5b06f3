"""Results for each of several parameters of interest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _views
from .._errors import listed, with_hint
from .._nextstat import ParameterError
from .base import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PoiResults"]


class PoiResults(Result):
    """The results of one question for each parameter of interest.

    They are iterated in the order of the model, and ``results["mu"]`` is that of one parameter. As
    in the command, the document of a single result is that of the result itself.

    Attributes
    ----------
    names : tuple of str
        The parameters of interest.
    results : tuple of Result
        The result for each.
    measurement : str
    converged : bool
        Whether all of them converged.
    warnings : tuple of str
        Those of all results, with the names of the parameters.
    """

    __slots__ = ()
    _schema = "every-poi"
    names: tuple[str, ...]
    results: tuple[Any, ...]
    measurement: str
    converged: bool
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __getitem__(self, name: str) -> Any:
        if name in self.names:
            return self.results[self.names.index(name)]
        error = ParameterError(f"there is no result for the parameter `{name}`")
        raise with_hint(error, f"there are results for {listed(self.names)}")

    def _view(self) -> _views.View:
        views = [result._view() for result in self.results]
        facts = [("results", ", ".join(self.names))]
        tables = []
        for name, view in zip(self.names, views):
            facts += [("", ""), ("of", name), *view.facts]
            tables += view.tables
        return _views.View("PoiResults", facts, tables)

    def _head(self) -> dict[str, Any]:
        found = super()._head()
        if len(self.results) == 1:
            found["$schema"] = self.results[0]._head()["$schema"]
        return found

    def _document(self) -> dict[str, Any]:
        documents = [result._document() for result in self.results]
        if len(documents) == 1:
            return documents[0]
        return {
            "results": documents,
            "converged": self.converged,
            "warnings": list(self.warnings),
        }
