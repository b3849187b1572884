"""A PySpark function of a model, and the bundle of code that it needs to run again later.

The bundle is the part of the function's module that the function reaches: itself, the functions
and constants of the module that it names, and the imports that those use. Its text, stripped of
comments, formatting, docstrings and types, is what the fingerprint is made of, so an edit
elsewhere in the file changes nothing.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.bundling import bundle_text, compiled, imported_modules, left_out

if TYPE_CHECKING:
    from collections.abc import Callable


class UnbundledImportError(BackfillAssetsError):
    """A model function reaches code of its own package in another module."""

    def __init__(self, *, function: str, module: str) -> None:
        self.function, self.module = function, module
        super().__init__(
            f"model function '{function}' uses '{module}' of its own package, which would be left "
            "out of the stored snapshot; move that code into the function's own module"
        )


class MissingFromBundleError(BackfillAssetsError):
    """A model function uses a name that nothing at the top level of its module defines."""

    def __init__(self, *, function: str, name: str) -> None:
        self.function, self.name = function, name
        super().__init__(
            f"model function '{function}' uses '{name}', which its module neither defines nor "
            "imports by name at its top level (types that are imported for checking only, and "
            "`import *`, don't count); define or import it there"
        )


class NotAModuleFunctionError(BackfillAssetsError):
    """A model function is a lambda, a closure or lives where its source can't be read."""

    def __init__(self, function: str) -> None:
        self.function = function
        super().__init__(
            f"model function '{function}' has no source at the top level of a module; define it "
            "with `def` at the top level of a file"
        )


@dataclass(frozen=True, slots=True)
class FunctionQuery:
    """A function ``(inputs, interval) -> DataFrame`` as the bundle of code that runs it.

    Attributes:
        name: of the function inside the bundle.
        bundle: Python source of everything that it needs, normalised.
    """

    name: str
    bundle: str

    def settled(self) -> str:
        """The bundle as this release of Python writes it, whichever one bundled it."""
        return ast.unparse(ast.parse(self.bundle))

    def load(self) -> Callable[..., Any]:
        """Run the bundle in a module of its own and give the function."""
        digest = hashlib.sha256(self.bundle.encode()).hexdigest()[:16]
        module = ModuleType(f"_model_bundle_{digest}")
        sys.modules[module.__name__] = module  # dataclasses look their module up
        exec(compiled(self.bundle, f"<model {self.name}>"), module.__dict__)  # noqa: S102 - our own stored code
        return getattr(module, self.name)


def function_query(function: Callable[..., Any]) -> FunctionQuery:
    """Bundle a model function with what it reaches in its module.

    Raises:
        NotAModuleFunctionError: its source isn't the top level of a file.
        UnbundledImportError: it uses another module of its own package.
        MissingFromBundleError: it uses a name that its module does not define.
    """
    name = getattr(function, "__name__", repr(function))
    text = bundle_text(_source(function, name), name)
    if text is None:
        raise NotAModuleFunctionError(name)
    package = function.__module__.partition(".")[0]
    for module in imported_modules(text):
        if module.startswith(".") or module.partition(".")[0] == package:
            raise UnbundledImportError(function=name, module=module)
    for missing in sorted(left_out(text)):
        raise MissingFromBundleError(function=name, name=missing)
    return FunctionQuery(name, text)


def _source(function: Callable[..., Any], name: str) -> str:
    if getattr(function, "__qualname__", None) != name:
        raise NotAModuleFunctionError(name)  # a closure, or a method
    try:
        return inspect.getsource(sys.modules[function.__module__])
    except (AttributeError, KeyError, OSError, TypeError) as error:
        raise NotAModuleFunctionError(name) from error
