"""Expressions of numexpr as formulas of the engine."""

import ast
import math

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.BitAnd: "&&", ast.BitOr: "||"}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "!"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_FUNCTIONS = {
    **{name: name for name in ("exp", "log", "log10", "sqrt", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
}
#: Functions that are formulas of others.
_FORMULAS = {"log1p": "log(1 + {})", "expm1": "(exp({}) - 1)"}


def translated(expression, names):
    """Returns the formula of the engine.

    >>> translated("where(a > 1, a**2, arctan2(a, 2))", ["a"])
    '((`a` > 1.0) ? (`a` ** 2.0) : atan2(`a`, 2.0))'

    Raises
    ------
    ValueError
        If numexpr would refuse the expression, or the engine's formulas lack a part of it.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _Translation(expression, frozenset(names)).value(tree.body)
    except SyntaxError as error:
        raise ValueError(f"`{expression}` is not an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("an expression of this depth is not translated") from None


def _is_condition(node):
    """Returns whether a part of an expression is true or false, and no number."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr))
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert))


class _Translation:
    def __init__(self, expression, names):
        self._expression, self._names = expression, names

    def _refuse(self, node, why):
        text = ast.get_source_segment(self._expression.strip(), node) or self._expression
        raise ValueError(f"`{text}` {why}")

    def value(self, node):
        """Returns the formula of a part of the expression."""
        made = getattr(self, f"_{type(node).__name__.lower()}", None)
        return made(node) if made is not None else self._refuse(node, "is not a part of formulas")

    def _constant(self, node):
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            self._refuse(node, "is not a real number")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        return repr(value) if math.isfinite(value) else self._refuse(node, "is not a finite number")

    def _condition(self, node):
        """Returns the formula of what has to be true or false."""
        return self.value(node) if _is_condition(node) else self._refuse(node, "is not a comparison")

    def _name(self, node):
        if node.id not in self._names:
            known = ", ".join(f"`{name}`" for name in sorted(self._names))
            self._refuse(node, f"is not one of the parameters {known}")
        return f"`{node.id}`"

    def _binop(self, node):
        if type(node.op) not in _BINARY:
            self._refuse(node, "is not a part of formulas")
        part = self._condition if _is_condition(node) else self.value
        return f"({part(node.left)} {_BINARY[type(node.op)]} {part(node.right)})"

    def _unaryop(self, node):
        if type(node.op) not in _UNARY:
            self._refuse(node, "is not a part of formulas")
        part = self._condition if _is_condition(node) else self.value
        return f"({_UNARY[type(node.op)]}{part(node.operand)})"

    def _compare(self, node):
        if len(node.ops) > 1 or type(node.ops[0]) not in _COMPARISONS:
            self._refuse(node, "is not a comparison of two numbers")
        return f"({self.value(node.left)} {_COMPARISONS[type(node.ops[0])]} {self.value(node.comparators[0])})"

    def _call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) and not node.keywords else None
        if name == "where" and len(node.args) == 3:
            condition, *values = node.args
            return "({} ? {} : {})".format(self._condition(condition), *map(self.value, values))
        arguments = [self.value(argument) for argument in node.args]
        if name in _FORMULAS and len(arguments) == 1:
            return _FORMULAS[name].format(*arguments)
        if name in _FUNCTIONS and len(arguments) == (2 if name == "arctan2" else 1):
            return f"{_FUNCTIONS[name]}({', '.join(arguments)})"
        return self._refuse(node, "is not a function of formulas")
