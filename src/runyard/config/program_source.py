"""What a Python program says of its parameters, read from its text and never run.

Options of argparse, click and typer, and what it reads of `wandb.config`. `is_whole` says whether
that is certainly all: only then an option that is not there is a mistake.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runyard.config.program_defaults import Defaults

_CONFIG_METHODS = frozenset(
    ("get", "update", "setdefaults", "keys", "values", "items", "as_dict", "setdefault", "copy")
)
_STANDS_FOR_ITSELF = ("store_true", "store_false", "store_const", "count", "help", "version")
# What takes options and is not looked into: its programs are judged by their words alone.
_OTHER_PARSERS = ("hydra", "absl", "fire", "tyro", "jsonargparse", "simple_parsing", "docopt",
                  "draccus", "omegaconf", "configargparse", "tap", "transformers")  # fmt: skip
MISSING: Any = object()


@dataclass(frozen=True)
class Option:
    """An option, or a word without dashes, that the program takes."""

    names: tuple[str, ...]
    line: int
    required: bool = False
    is_flag: bool = False
    # As argparse calls it with the text: "int", "float", "bool"; "" where it is something else.
    type: str = ""
    choices: tuple[Any, ...] | None = None
    is_positional: bool = False
    dest: str = ""


@dataclass
class Source:
    """One program's text."""

    parser: str | None = None
    options: list[Option] = field(default_factory=list)
    is_whole: bool = False
    # Unknown options are passed over, or no prefix of an option stands for it.
    takes_unknown: bool = False
    takes_prefixes: bool = True
    # Keys that it reads of wandb.config, with the line of the first time; and those that it sets.
    reads: dict[str, int] = field(default_factory=dict)
    sets: set[str] = field(default_factory=set)
    # Whether what it sets is certainly all.
    sets_are_whole: bool = True
    # Every name and every text in it.
    words: set[str] = field(default_factory=set)

    def find(self, name: str) -> Option | None:
        """The option that `--name` means."""
        wanted = f"--{name}"
        for option in self.options:
            if wanted in option.names:
                return option
        if not self.takes_prefixes:
            return None
        longer = [o for o in self.options if any(name.startswith(wanted) for name in o.names)]
        return longer[0] if len(longer) == 1 else None


def read_source(text: str) -> Source | None:
    """What the text says; None where it is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    source = Source()
    source.words = set(_words(tree))
    _read_argparse(tree, source)
    if source.parser is None:
        _read_decorated(tree, source)
    if source.parser is None:
        source.parser = next((name for name in _imports(tree) if name in _OTHER_PARSERS), None)
    _read_config(tree, source)
    return source


def _words(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.replace("-", "_").replace("--", "").split()
            yield node.value.lstrip("-")


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _read_argparse(tree: ast.AST, source: Source) -> None:
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_named(node, "ArgumentParser")
    ]
    if not made:
        return
    source.parser = "argparse"
    parsers = {target for target, value in _assigned(tree) if value in made}
    groups = {
        target
        for target, value in _assigned(tree)
        if _method_of(value, parsers) in ("add_argument_group", "add_mutually_exclusive_group")
    }
    used = parsers | groups
    adds = [node for node in ast.walk(tree) if _method_of(node, used) == "add_argument"]
    options = [_argparse_option(node) for node in adds if isinstance(node, ast.Call)]
    source.options = [option for option in options if option is not None]
    methods = {_method_of(node, parsers) for node in ast.walk(tree)}
    source.takes_unknown = "parse_known_args" in methods
    keywords = {word.arg: word.value for call in made for word in call.keywords}
    abbreviates = keywords.get("allow_abbrev")
    source.takes_prefixes = not (
        isinstance(abbreviates, ast.Constant) and abbreviates.value is False
    )
    odd = {"parents", "prefix_chars", "fromfile_prefix_chars", None} & set(keywords)
    source.is_whole = (
        len(made) == len(parsers) == 1
        and None not in options
        and not odd
        and "add_subparsers" not in methods
        and not _is_handed_on(tree, used)
        and bool({"parse_args", "parse_known_args"} & methods)
        and not any(isinstance(node, ast.For | ast.While) and _adds_in(node, used)
                    for node in ast.walk(tree))
    )  # fmt: skip


def _adds_in(loop: ast.AST, used: set[str]) -> bool:
    return any(_method_of(node, used) == "add_argument" for node in ast.walk(loop))


def _is_handed_on(tree: ast.AST, names: set[str]) -> bool:
    """Whether somebody else gets a parser, and may add to it."""
    known = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return any(
        isinstance(node, ast.Name)
        and node.id in names
        and isinstance(node.ctx, ast.Load)
        and id(node) not in known
        for node in ast.walk(tree)
    )


def _argparse_option(call: ast.Call) -> Option | None:
    names, keywords = _words_of(call)
    if not names:
        return None
    action = _literal(keywords["action"]) if "action" in keywords else "store"
    # An action that the program made may take anything.
    if not isinstance(action, str):
        return None
    nargs = _literal(keywords["nargs"]) if "nargs" in keywords else None
    choices = _literal(keywords["choices"]) if "choices" in keywords else None
    positional = not names[0].startswith("-")
    long = next((name for name in names if name.startswith("--")), names[0])
    dest = _literal(keywords["dest"]) if "dest" in keywords else long.lstrip("-").replace("-", "_")
    return Option(
        tuple(names),
        call.lineno,
        required=_literal(keywords.get("required")) is True
        or (positional and nargs not in ("?", "*") and "default" not in keywords),
        is_flag=action in _STANDS_FOR_ITSELF,
        type=_type_name(keywords),
        choices=tuple(choices) if isinstance(choices, list | tuple) else None,
        is_positional=positional,
        dest=dest if isinstance(dest, str) else "",
    )


def _words_of(call: ast.Call) -> tuple[list[str], dict[str, ast.expr]]:
    """An option's names, and what else is said of it; no names where not all of it is written."""
    names = [_literal(word) for word in call.args]
    keywords = {word.arg: word.value for word in call.keywords if word.arg is not None}
    is_whole = len(keywords) == len(call.keywords)  # No **more.
    return (names if is_whole and all(isinstance(name, str) for name in names) else []), keywords


def _type_name(keywords: dict[str, ast.expr]) -> str:
    kind = keywords.get("type")
    return kind.id if isinstance(kind, ast.Name) and kind.id in ("int", "float", "bool") else ""


def _read_decorated(tree: ast.AST, source: Source) -> None:
    """click's and typer's commands: one function, whose decorators or arguments are the options."""
    imported = set(_imports(tree))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if "click" in imported:
        source.parser = "click"
        source.takes_prefixes = False
        commands = [
            function
            for function in functions
            if any(_is_named(decorator, "command") for decorator in function.decorator_list)
        ]
        if len(commands) == 1:
            _read_click(commands[0], source)
    elif "typer" in imported:
        source.parser = "typer"


def _read_click(command: ast.FunctionDef, source: Source) -> None:
    decorators = command.decorator_list
    calls = [
        decorator
        for decorator in decorators
        if isinstance(decorator, ast.Call) and _is_named(decorator, "option")
    ]
    options = [_click_option(call) for call in calls]
    source.options = [option for option in options if option is not None]
    known = ("option", "command", "argument")
    has_others = any(
        not any(_is_named(decorator, name) for name in known) for decorator in decorators
    )
    takes_more = any(_keyword(decorator, "context_settings") for decorator in decorators)
    source.is_whole = None not in options and not has_others and not takes_more


def _click_option(call: ast.Call) -> Option | None:
    names, keywords = _words_of(call)
    if not names:
        return None
    return Option(
        tuple(part for name in names for part in name.split("/")),
        call.lineno,
        required=_literal(keywords.get("required")) is True,
        is_flag=_literal(keywords.get("is_flag")) is True or any("/" in name for name in names),
        type=_type_name(keywords),
    )


def _read_config(tree: ast.AST, source: Source) -> None:
    """What is read of wandb.config, and what of it the program sets by itself."""
    assigned = list(_assigned(tree))
    runs = {name for name, value in assigned if _is_call(value, "init")} | {"wandb", "run"}
    configs = {name for name, value in assigned if _is_config(value, runs, frozenset())}
    options = {option.dest for option in source.options} if source.is_whole else None
    defaults = Defaults(tree, options)

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_config(node.value, runs, configs):
            if isinstance(node.ctx, ast.Store):
                source.sets.add(node.attr)
            elif node.attr not in _CONFIG_METHODS and not node.attr.startswith("_"):
                source.reads.setdefault(node.attr, node.lineno)
        elif isinstance(node, ast.Subscript) and _is_config(node.value, runs, configs):
            key = _literal(node.slice)
            if isinstance(key, str) and isinstance(node.ctx, ast.Store):
                source.sets.add(key)
            elif isinstance(key, str):
                source.reads.setdefault(key, node.lineno)
        elif isinstance(node, ast.Call):
            _note_defaults(node, runs, configs, source, defaults)


def _note_defaults(
    call: ast.Call, runs: set[str], configs: set[str], source: Source, defaults: Defaults
) -> None:
    """`wandb.init(config=...)`, `config.update(...)`, `config.setdefaults(...)`."""
    mapping: ast.expr | None = None
    if _is_call(call, "init") and _is_wandb(call.func, runs):
        mapping = _keyword(call, "config")
        if mapping is None and any(word.arg is None for word in call.keywords):
            source.sets_are_whole = False  # `**options` may hold a config
    elif (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("update", "setdefaults")
        and _is_config(call.func.value, runs, configs)
    ):
        mapping = call.args[0] if call.args else None
    if mapping is None:
        return
    keys = defaults.keys_of(mapping)
    source.sets |= keys or set()
    source.sets_are_whole = source.sets_are_whole and keys is not None


def _is_wandb(node: ast.expr, runs: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and (
        isinstance(node.value, ast.Name) and node.value.id in ("wandb", *runs)
    )


def _is_config(node: ast.expr, runs: set[str], configs: frozenset[str] | set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in configs
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "config"
        and isinstance(node.value, ast.Name)
        and node.value.id in runs
    )


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names, with what is assigned to them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            if isinstance(node.target, ast.Name) and node.value is not None:
                yield node.target.id, node.value
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            yield node.optional_vars.id, node.context_expr


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and _is_named(node, name)


def _is_named(node: ast.AST, name: str) -> bool:
    name_node = node.func if isinstance(node, ast.Call) else node
    return (isinstance(name_node, ast.Name) and name_node.id == name) or (
        isinstance(name_node, ast.Attribute) and name_node.attr == name
    )


def _method_of(node: ast.AST, names: set[str]) -> str | None:
    """The method that is called of one of these names."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner = node.func.value
    return node.func.attr if isinstance(owner, ast.Name) and owner.id in names else None


def _keyword(node: ast.AST, name: str) -> ast.expr | None:
    if not isinstance(node, ast.Call):
        return None
    return next((word.value for word in node.keywords if word.arg == name), None)


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        return MISSING
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return MISSING
