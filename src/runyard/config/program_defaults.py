"""Which keys an expression of a program holds: the defaults that it gives to `wandb.init`.

Followed through names, parameters of functions and their calls. None wherever something could be
added that the text does not show: then nothing is said of missing keys.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

Keys = set[str] | None
_Function = ast.FunctionDef | ast.AsyncFunctionDef
# These are called with a dictionary and do not change it.
_READERS = frozenset(("print", "pprint", "len", "dict", "list", "sorted", "vars", "init", "dumps"))


class Defaults:
    """One program's text. `options` are the keys of what its parser returns, if they are known."""

    def __init__(self, tree: ast.AST, options: Keys) -> None:
        self._tree = tree
        self._options = options
        self._parents: dict[int, ast.AST] = {}
        self._scopes: dict[int, _Function | None] = {}
        for node in ast.walk(tree):  # each node before its children
            scope = node if isinstance(node, _Function) else self._scopes.get(id(node))
            for child in ast.iter_child_nodes(node):
                self._parents[id(child)] = node
                self._scopes[id(child)] = scope
        self._followed: set[int] = set()

    def keys_of(self, value: ast.expr | None) -> Keys:
        """The keys of a mapping; none of `None`; None where they are not known."""
        match value:
            case ast.Constant(value=None):
                return set()
            case ast.Dict():
                return _union(self._item_keys(value))
            case ast.BoolOp(values=operands):
                return _union(self.keys_of(operand) for operand in operands)
            case ast.IfExp(body=body, orelse=other):
                return _union((self.keys_of(body), self.keys_of(other)))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return _union((self.keys_of(left), self.keys_of(right)))
            case ast.Call(func=ast.Name(id="dict")):
                return _union(self._call_keys(value))
            case ast.Call(func=ast.Name(id="vars"), args=[argument]):
                return self.keys_of(argument)
            case ast.Call(func=ast.Attribute(attr="parse_args")):
                return self._options
            case ast.Name():
                return self._keys_of_name(value)
        return None

    def _item_keys(self, value: ast.Dict) -> Iterator[Keys]:
        for key, item in zip(value.keys, value.values, strict=True):
            yield self.keys_of(item) if key is None else _literal_key(key)

    def _call_keys(self, call: ast.Call) -> Iterator[Keys]:
        """`dict(more, name=1)` and `mapping.update(more, name=1)`."""
        yield from map(self.keys_of, call.args)
        for word in call.keywords:
            yield {word.arg} if word.arg is not None else self.keys_of(word.value)

    def _keys_of_name(self, use: ast.Name) -> Keys:
        scope: ast.AST | None = use
        while scope is not None:
            scope = self._scope_of(scope)
            bindings = list(self._bindings(use, scope))
            if bindings or scope is None:
                return _union([*bindings, *self._changes(use, scope)]) if bindings else None
        return None

    def _scope_of(self, node: ast.AST) -> _Function | None:
        """The function around a node; None is the module."""
        return self._scopes.get(id(node))

    def _in_scope(self, scope: ast.AST | None, use: ast.Name) -> Iterator[ast.AST]:
        """What stands in a scope itself: inside a function only what comes before the use."""
        is_local = self._scope_of(use) is scope
        for node in ast.walk(scope or self._tree):
            line = getattr(node, "lineno", 0)
            if self._scope_of(node) is scope and (not is_local or line < use.lineno):
                yield node

    def _bindings(self, use: ast.Name, scope: _Function | None) -> Iterator[Keys]:
        if scope is not None and use.id in {argument.arg for argument in _parameters(scope)}:
            yield self._keys_of_parameter(scope, use.id)
        for node in self._in_scope(scope, use):
            if isinstance(node, ast.Name) and node.id == use.id:
                if not isinstance(node.ctx, ast.Store):
                    continue
                parent = self._parents[id(node)]
                is_plain = isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr)
                yield self.keys_of(parent.value) if is_plain else None  # type: ignore[attr-defined]
            elif isinstance(node, ast.alias) and (node.asname or node.name) == use.id:
                yield None

    def _changes(self, use: ast.Name, scope: _Function | None) -> Iterator[Keys]:
        """What is added to the mapping of this name after it was made."""
        for node in self._in_scope(scope, use):
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=key, ctx=ast.Store()):
                    if name == use.id:
                        yield _literal_key(key)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update")):
                    if name == use.id:
                        yield from self._call_keys(node)
                case ast.Call(func=function, args=arguments):
                    handed_on = [*arguments, *(word.value for word in node.keywords)]
                    changes = _last_name(function) not in _READERS and use not in handed_on
                    names = {word.id for word in handed_on if isinstance(word, ast.Name)}
                    if changes and use.id in names:
                        yield None

    def _keys_of_parameter(self, function: _Function, name: str) -> Keys:
        """What callers give, or the default where one gives nothing."""
        if id(function) in self._followed:
            return set()
        self._followed.add(id(function))
        default = _default_of(function, name)
        arguments = [_argument_of(call, function, name) for call in self._calls(function)]
        values = [default if argument is None else argument for argument in arguments] or [default]
        keys = _union(self.keys_of(argument) for argument in values)
        self._followed.discard(id(function))
        return keys

    def _calls(self, function: _Function) -> Iterator[ast.Call | None]:
        """Where a function is called; None where it is handed to another that calls it."""
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Name | ast.Attribute) or _last_name(node) != function.name:
                continue
            parent = self._parents[id(node)]
            is_called = isinstance(parent, ast.Call) and parent.func is node
            yield parent if is_called else None  # type: ignore[misc]


def _union(parts: Iterable[Keys]) -> Keys:
    keys: set[str] = set()
    for part in parts:
        if part is None:
            return None
        keys |= part
    return keys


def _literal_key(node: ast.expr) -> Keys:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return {node.value} if is_text else None  # type: ignore[attr-defined]


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parameters(function: _Function) -> Sequence[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _default_of(function: _Function, name: str) -> ast.expr | None:
    arguments = function.args
    by_place = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(by_place), reversed(arguments.defaults), strict=False),
             *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
    return next((default for argument, default in pairs if argument.arg == name), None)


def _argument_of(call: ast.Call | None, function: _Function, name: str) -> ast.expr | None:
    """What a call gives for a parameter: None for nothing; a starred word may hold anything."""
    if call is None:
        return None
    for word in call.keywords:
        if word.arg in (name, None):
            return word.value if word.arg else ast.Starred(word.value)
    starred = next((word for word in call.args if isinstance(word, ast.Starred)), None)
    if starred is not None:
        return starred
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    place = names.index(name) if name in names else len(call.args)
    return call.args[place] if place < len(call.args) else None
