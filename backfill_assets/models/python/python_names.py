"""Find the values that the names in a model's code stand for, as far as the code itself shows.

A name stands for the value assigned to it, for what a loop takes out of a written collection, for
what every call of an own function passes as a parameter, or for what a class holds. Scopes are not
distinguished: every statement that binds a name in its module counts. A value that can't be followed
makes the answer incomplete.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.models.python.syntax import bindings, with_parents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from backfill_assets.models.python.reflection import KeptStatements

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_COPIES = frozenset({"sorted", "list", "tuple", "set", "frozenset", "reversed"})
_ONLY_LOOKS = _COPIES | {"len", "enumerate", "zip", "any", "all", "min", "max", "sum", "dict"}
_LOOKING_METHODS = frozenset({"items", "keys", "values", "get", "index", "count", "copy"})


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of code, each with the module that it stands in.

    Attributes:
        pieces: each an expression and its module.
        complete: whether no other piece is possible.
    """

    pieces: tuple[tuple[ast.expr, str], ...] = ()
    complete: bool = False


_UNKNOWN = Pieces()


@dataclass(frozen=True, slots=True)
class _Bound:
    """One place that binds a name: to a value, to the parts of a collection, or to arguments of calls."""

    value: ast.expr | None = None
    parts_of: ast.expr | None = None
    position: int | None = None
    function: _Function | None = None
    parameter: ast.arg | None = None


@dataclass(slots=True)
class _Module:
    bound: dict[str, list[_Bound]] = field(default_factory=lambda: defaultdict(list))
    times: Counter[str] = field(default_factory=Counter[str])
    classes: dict[str, ast.ClassDef] = field(default_factory=dict[str, ast.ClassDef])
    functions: dict[str, _Function] = field(default_factory=dict[str, _Function])
    declared: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))


class Names:
    """Follows names in the code of some modules."""

    def __init__(
        self,
        kept: Iterable[KeptStatements],
        imports: Mapping[str, Mapping[str, str]],
        entry: tuple[str, str],
    ) -> None:
        """Take the modules, what they import, and the module and name of the function that others call."""
        self._imports, self._entry = imports, entry
        self._modules: dict[str, _Module] = {}
        self._mentions: dict[str, list[tuple[ast.expr, ast.AST | None, str]]] = defaultdict(list)
        self._stored: set[str] = set()
        self._renamed: set[str] = set()
        self._known: dict[tuple[str, str], Pieces] = {}
        for module in kept:
            self._modules[module.module.name] = _Module()
            for top in module.body:
                for parent, node in with_parents(top):
                    self._note(parent, node, module.module.name)

    def _note(self, parent: ast.AST | None, node: ast.AST, module: str) -> None:
        notes = self._modules[module]
        notes.times.update(bindings(node))
        for name, binding in _bound_by(node, is_method=isinstance(parent, ast.ClassDef)):
            notes.bound[name].append(binding)
        for name, type_ in _declared_by(node, parent):
            notes.declared[name].append(type_)
        self._note_uses(parent, node, module)
        match node:
            case ast.ClassDef(name=name):
                notes.classes[name] = node
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not isinstance(
                parent, ast.ClassDef
            ):
                notes.functions[name] = node
            case _:
                return

    def _note_uses(self, parent: ast.AST | None, node: ast.AST, module: str) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self._mentions[name].append((node, parent, module))
            case ast.Attribute(attr=name, ctx=ast.Load()):
                if dotted(node).partition(".")[0] in self._imports.get(module, {}):
                    self._mentions[name].append((node, parent, module))
            case ast.Attribute(attr=name):
                self._stored.add(name)
            case ast.alias(name=name, asname=str(other)) if other != name:
                self._renamed |= {name, other}
            case _:
                return

    def values(self, name: str, module: str) -> Pieces:
        """Give the code whose value a dotted name may have."""
        at = (name, module)
        if at not in self._known:
            self._known[at] = _UNKNOWN  # while it is looked for: a name that is made from itself
            self._known[at] = self._values(name, module)
        return self._known[at]

    def _values(self, name: str, module: str) -> Pieces:
        first, _, rest = name.partition(".")
        notes = self._modules.get(module)
        if notes is None:
            return _UNKNOWN
        if not rest and first in notes.bound:
            values = [self._of(binding, module) for binding in notes.bound[first]]
            return _all(values, complete=notes.times[first] <= len(values))
        if rest and notes.times[first] == 1 and first in notes.classes:
            return self._in_class(notes.classes[first], rest, module)
        holder, inner = self._imported(name, module)
        if not holder:
            return _UNKNOWN
        return _all([self.values(inner, holder)], complete=notes.times[first] <= 1)

    def _of(self, binding: _Bound, module: str) -> Pieces:
        if binding.value is not None:
            return Pieces(((binding.value, module),), complete=True)
        if binding.function is not None and binding.parameter is not None:
            return self._given(binding.function, binding.parameter.arg, module)
        if binding.parts_of is None:
            return _UNKNOWN
        parts = self.parts(binding.parts_of, module)
        return parts if binding.position is None else _at(parts, binding.position)

    def _in_class(self, owner: ast.ClassDef, name: str, module: str) -> Pieces:
        """The value that a class holds under a name, if only its own body sets it."""
        bound = [
            binding
            for node in owner.body
            if isinstance(node, (ast.Assign, ast.AnnAssign))
            for at, binding in _bound_by(node, is_method=False)
            if at == name
        ]
        times = sum(name in {*bindings(node)} for node in ast.walk(owner))
        is_plain = not owner.keywords and {dotted(base) for base in owner.bases} <= {
            "str",
            "StrEnum",
        }
        is_own = is_plain and all(
            "dataclass" in ast.dump(decorator) for decorator in owner.decorator_list
        )
        complete = is_own and times == len(bound) and name not in self._stored
        return _all(
            [self._of(binding, module) for binding in bound], complete=complete and bool(bound)
        )

    def _imported(self, name: str, module: str) -> tuple[str, str]:
        """Name the own module that defines an imported name, and the name there."""
        first, _, rest = name.partition(".")
        origin = self._imports.get(module, {}).get(first)
        parts = ".".join(filter(None, (origin, rest))).split(".") if origin else []
        for count in range(len(parts) - 1, 0, -1):
            if ".".join(parts[:count]) in self._modules:
                return ".".join(parts[:count]), ".".join(parts[count:])
        return "", ""

    def _given(self, function: _Function, parameter: str, module: str) -> Pieces:
        """The values that all calls of an own function pass as a parameter, if its name is only called."""
        name = function.name
        notes = self._modules[module]
        is_followed = (
            notes.functions.get(name) is function
            and notes.times[name] == 1
            and not function.decorator_list
            and name not in self._renamed | self._stored
            and (module, name) != self._entry
        )
        mentions = self._mentions[name]
        if not is_followed or not mentions:
            return _UNKNOWN
        given: list[tuple[ast.expr, str]] = []
        for node, parent, where in mentions:
            if not isinstance(parent, ast.Call) or parent.func is not node:
                return _UNKNOWN
            written, default = _argument(function, parameter, parent)
            if written is None and default is None:
                return _UNKNOWN
            given += [(written, where)] if written else [(default, module)] if default else []
        return Pieces(tuple(given), complete=True)

    def returned(self, called: ast.expr, module: str) -> Pieces:
        """Give the code whose value a call of an own function gives back."""
        name = dotted(called)
        holder, inner = (module, name) if "." not in name else ("", "")
        if not holder or name not in self._modules[module].functions:
            is_shadowed = self._modules[module].times[name.partition(".")[0]] > 1
            holder, inner = ("", "") if is_shadowed else self._imported(name, module)
        notes = self._modules.get(holder)
        function = notes.functions.get(inner) if notes else None
        if notes is None or not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return _UNKNOWN
        inside = [*_of_its_own(function)]
        if notes.times[inner] != 1 or any(
            isinstance(x, (ast.Yield, ast.YieldFrom)) for x in inside
        ):
            return _UNKNOWN
        given = [(x.value, holder) for x in inside if isinstance(x, ast.Return) and x.value]
        return Pieces(tuple(given), complete=bool(given))

    def parts(self, node: ast.expr, module: str) -> Pieces:
        """Give the parts of a collection that is written in the code; of a dictionary the keys."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=[inner]) if (
                name in _COPIES and name not in self._modules[module].times
            ):
                return self.parts(inner, module)
            case ast.Call(func=ast.Attribute(value=value, attr="items"), args=[]):
                return self._of_displays(value, module, _items)
            case ast.Call(func=ast.Attribute(value=value, attr="values"), args=[]):
                return self._of_displays(value, module, _values)
            case ast.Call(func=ast.Attribute(value=value, attr="keys"), args=[]):
                return self._of_displays(value, module, _keys)
            case _:
                return self._of_displays(node, module, _parts)

    def looked_up(self, node: ast.expr, key: ast.expr, module: str) -> Pieces:
        """Give the value of a written collection under a key; every value if the key is unknown."""
        return self._of_displays(node, module, lambda display: _under(display, key))

    def _of_displays(
        self, node: ast.expr, module: str, parts: Callable[[ast.expr], list[ast.expr] | None]
    ) -> Pieces:
        displays = self._displays(node, module)
        displayed = [(parts(display), where) for display, where in displays.pieces]
        return Pieces(
            tuple((part, where) for inner, where in displayed for part in inner or ()),
            complete=displays.complete
            and bool(displayed)
            and all(x is not None for x, _ in displayed),
        )

    def _displays(self, node: ast.expr, module: str) -> Pieces:
        """Follow a name to the collections that are written in the code, if none can be changed."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
            return Pieces(((node, module),), complete=True)
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return _UNKNOWN
        values = self.values(dotted(node), module)
        inner = _all(
            [self._displays(piece, where) for piece, where in values.pieces], complete=True
        )
        stays = all(isinstance(piece, ast.Tuple) for piece, _ in inner.pieces)
        stays = stays or (self._is_plain_name(node, module) and self._only_looked_at(node))
        stays = stays and not any(_holds_others(piece) for piece, _ in inner.pieces)
        return Pieces(inner.pieces, complete=values.complete and inner.complete and stays)

    def _is_plain_name(self, node: ast.expr, module: str) -> bool:
        """Whether code names a value of a module, not an attribute of a class."""
        name = dotted(node)
        return "." not in name or "." not in (self._imported(name, module)[1] or ".")

    def _only_looked_at(self, node: ast.Name | ast.Attribute) -> bool:
        name = node.id if isinstance(node, ast.Name) else node.attr
        is_shared = name in self._renamed | self._stored
        return not is_shared and all(
            _looks(mention, parent, self._modules[where].times)
            for mention, parent, where in self._mentions[name]
        )

    def is_own(self, value: ast.expr, attribute: str, module: str, steps: int = 3) -> bool:
        """Say whether a value is certainly made from own classes that define an attribute."""
        match value:
            case ast.Call(func=func):
                return attribute in self._defined(func, module)
            case ast.Name(id=name) if name in self._modules[module].declared:
                notes = self._modules[module]
                types = notes.declared[name]
                made = [
                    binding.value
                    for binding in notes.bound.get(name, [])
                    if binding.parameter is None or binding.parameter.annotation is None
                ]
                return (
                    notes.times[name] == len(types) + len(made)
                    and all(attribute in self._defined(type_, module) for type_ in types)
                    and all(
                        isinstance(x, ast.Call) and self.is_own(x, attribute, module) for x in made
                    )
                )
            case ast.Name() | ast.Attribute() if steps:
                values = self.values(dotted(value), module)
                return (
                    values.complete
                    and bool(values.pieces)
                    and all(
                        self.is_own(x, attribute, where, steps - 1) for x, where in values.pieces
                    )
                )
            case _:
                return False

    def _defined(self, type_: ast.expr, module: str) -> set[str]:
        """The names that the body of an own class defines."""
        name = type_.value if isinstance(type_, ast.Constant) else dotted(type_)
        holder, inner = (module, str(name))
        if inner not in self._modules[module].classes:
            holder, inner = self._imported(str(name), module)
        notes = self._modules.get(holder)
        if notes is None or inner not in notes.classes or notes.times[inner] != 1:
            return set()
        body = notes.classes[inner].body
        return {name for node in body for inner in _shallow(node) for name in bindings(inner)}


def dotted(node: ast.AST) -> str:
    """Write a name and its attributes as the code does; empty for other code."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case _:
            return ""


def _bound_by(node: ast.AST, *, is_method: bool) -> Iterator[tuple[str, _Bound]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((x.id, _Bound(value)) for x in targets if isinstance(x, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, _Bound(value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, _Bound(value)
        case ast.For(target=target, iter=parts) | ast.comprehension(target=target, iter=parts):
            yield from _looped(target, parts)
        case ast.FunctionDef() | ast.AsyncFunctionDef() if not is_method:
            args = node.args
            for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs):
                yield argument.arg, _Bound(function=node, parameter=argument)
        case _:
            return


def _looped(target: ast.expr, parts: ast.expr) -> Iterator[tuple[str, _Bound]]:
    match target:
        case ast.Name(id=name):
            yield name, _Bound(parts_of=parts)
        case ast.Tuple(elts=inner) if not any(isinstance(x, ast.Starred) for x in inner):
            for at, element in enumerate(inner):
                if isinstance(element, ast.Name):
                    yield element.id, _Bound(parts_of=parts, position=at)
        case _:
            return


def _declared_by(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[str, ast.expr]]:
    """Parameters with a type: by annotation, and the object that a method belongs to."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    args = [*node.args.posonlyargs, *node.args.args]
    for argument in (*args, *node.args.kwonlyargs):
        if argument.annotation is not None:
            yield argument.arg, argument.annotation
    if isinstance(parent, ast.ClassDef) and args and args[0].annotation is None:
        yield args[0].arg, ast.Name(parent.name, ast.Load())


def _argument(
    function: _Function, parameter: str, call: ast.Call
) -> tuple[ast.expr | None, ast.expr | None]:
    """Give what a call passes for a parameter, and the default; neither if that can't be known."""
    if any(isinstance(x, ast.Starred) for x in call.args) or any(
        x.arg is None for x in call.keywords
    ):
        return None, None
    args = function.args
    names = [argument.arg for argument in (*args.posonlyargs, *args.args)]
    defaults = dict(zip(reversed(names), reversed(args.defaults), strict=False))
    keyword_only = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    defaults |= {argument.arg: default for argument, default in keyword_only if default is not None}
    given = dict(zip(names, call.args, strict=False)) | {
        keyword.arg: keyword.value for keyword in call.keywords if keyword.arg
    }
    return given.get(parameter), defaults.get(parameter)


def _all(several: Iterable[Pieces], *, complete: bool) -> Pieces:
    several = tuple(several)
    return Pieces(
        tuple(piece for result in several for piece in result.pieces),
        complete and all(result.complete for result in several),
    )


def _at(rows: Pieces, position: int) -> Pieces:
    """Give the parts at one position of written tuples."""
    parts = [
        (row.elts[position], where)
        for row, where in rows.pieces
        if isinstance(row, ast.Tuple) and position < len(row.elts) and _parts(row) is not None
    ]
    return Pieces(tuple(parts), rows.complete and len(parts) == len(rows.pieces))


def _parts(display: ast.expr) -> list[ast.expr] | None:
    if isinstance(display, ast.Dict):
        return _keys(display)
    inner = display.elts if isinstance(display, (ast.Tuple, ast.List, ast.Set)) else None
    return None if inner is None or any(isinstance(x, ast.Starred) for x in inner) else inner


def _keys(display: ast.expr) -> list[ast.expr] | None:
    keys = display.keys if isinstance(display, ast.Dict) else [None]
    written = [key for key in keys if key is not None]
    return written if len(written) == len(keys) else None


def _values(display: ast.expr) -> list[ast.expr] | None:
    if isinstance(display, ast.Dict) and _keys(display) is not None:
        return display.values
    return None


def _items(display: ast.expr) -> list[ast.expr] | None:
    keys, values = _keys(display), _values(display)
    if keys is None or values is None:
        return None
    return [ast.Tuple([*pair], ast.Load()) for pair in zip(keys, values, strict=True)]


def _under(display: ast.expr, key: ast.expr) -> list[ast.expr] | None:
    is_map = isinstance(display, ast.Dict)
    values = _values(display) if is_map else _parts(display)
    if values is None or isinstance(key, ast.Slice):
        return None
    keys = _keys(display) if is_map else [ast.Constant(at) for at in range(len(values))]
    written = [
        written_key.value for written_key in keys or () if isinstance(written_key, ast.Constant)
    ]
    if not isinstance(key, ast.Constant) or len(written) != len(values):
        return values
    return [value for at, value in zip(written, values, strict=True) if at == key.value] or None


def _holds_others(display: ast.expr) -> bool:
    """Say whether a collection holds another one that may be changed."""
    inner = (inner_node for inner_node in ast.walk(display) if inner_node is not display)
    return any(isinstance(inner_node, (ast.List, ast.Set, ast.Dict)) for inner_node in inner)


def _looks(node: ast.expr, parent: ast.AST | None, own: Mapping[str, int]) -> bool:
    """Whether code that mentions a collection can neither change it nor pass it on.

    Args:
        node: names the collection.
        parent: the code around it.
        own: the names that its module binds, so that they are no built-in functions.
    """
    match parent:
        case (
            ast.For(iter=looked_at)
            | ast.comprehension(iter=looked_at)
            | ast.Subscript(value=looked_at, ctx=ast.Load())
        ):
            return looked_at is node
        case ast.Attribute(attr=name):
            return name in _LOOKING_METHODS
        case ast.Call(func=ast.Name(id=name)):
            return name in _ONLY_LOOKS and name not in own
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr=name)):
            return name == "join"
        case _:
            return isinstance(parent, (ast.Compare, ast.Starred))


def _shallow(node: ast.stmt) -> Iterator[ast.AST]:
    """A statement of a class with the names it binds there; the bodies of functions are left out."""
    yield node
    if isinstance(node, ast.Assign):
        yield from node.targets
    elif isinstance(node, ast.AnnAssign):
        yield node.target


def _of_its_own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Walk a function without the functions and classes inside of it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
