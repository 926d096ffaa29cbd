"""Read the block of settings at the top of a Markdown file."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from graphwright.exceptions import ConfigurationError, MissingExtraError

__all__ = ["read_front_matter"]

_FENCE = re.compile(r"^---[ \t]*$")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*$")
_PAIR = re.compile(r"([\w.-]+)[ \t]*:(?:[ \t]+(.*))?$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_LIST_ENTRY = re.compile(r"""\s*"[^"\\,#]*"\s*|\s*'[^',#]*'\s*|[^\[\]{},"'#]*[^\[\]{},"'#\s]\s*""")
_LIST = re.compile(rf"\[(?:(?:{_LIST_ENTRY.pattern})(?:,(?:{_LIST_ENTRY.pattern}))*,?)?\s*\](?:\s+#.*)?")
_NEEDS_YAML = tuple("|>&*!{@`%")


def read_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the settings between the first `---` and the next, and the text after them.

    A value is a text or a list of texts, as YAML reads it when `pyyaml` is installed, else in its plain forms: text,
    quoted text, `[a, b]`, and a block of `- a` lines. Without a block, or with one that never ends, everything is text.

    Raises:
        ConfigurationError: the block cannot be read.
        MissingExtraError: it uses more of YAML, and `pyyaml` is not installed.
    """
    text = text.removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
    if not lines or not _FENCE.match(lines[0].rstrip("\r\n")):
        return {}, text
    end = next((index for index, line in enumerate(lines[1:], 1) if _END.match(line.rstrip("\r\n"))), None)
    if end is None:
        return {}, text
    return _settings("".join(lines[1:end])), "".join(lines[end + 1 :])


def _settings(block: str) -> dict[str, Any]:
    try:
        yaml = import_module("yaml")
    except ImportError:
        return _plain_settings(block)
    try:
        # An alias can make a small text describe an endless value.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(block, Loader=yaml.BaseLoader)):
            raise ConfigurationError("the settings at the top use a YAML alias; write each value where it belongs")
        # Of the plain kind, where each scalar is the text that was written.
        found = yaml.load(block, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        try:
            # An unquoted colon in a description is no YAML, and common.
            return _plain_settings(block)
        except ConfigurationError:
            raise ConfigurationError(f"the settings at the top are no YAML: {error}") from error
    if found is None or found == "":
        return {}
    if not isinstance(found, dict):
        raise ConfigurationError(f"the settings at the top are {found!r}; write them as 'key: value' lines")
    return found


def _plain_settings(block: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    key = ""
    for line in block.splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if key and re.match(r"[ \t]*-(?:[ \t]|$)", line) and (isinstance(found[key], list) or found[key] == ""):
            entries = found[key] if isinstance(found[key], list) else []
            found[key] = [*entries, _scalar(text[1:].strip())]
            continue
        pair = _PAIR.match(line)
        if pair is None:
            if line[0] in " \t":
                raise MissingExtraError(f"the line {line!r}", extra="yaml", package="pyyaml")
            raise ConfigurationError(f"{line!r} is no setting; write 'key: value'")
        key, value = pair[1], (pair[2] or "").strip()
        found[key] = _list(value) if value.startswith("[") else _scalar(value)
    return found


def _list(value: str) -> list[str]:
    if _LIST.fullmatch(value) is None:
        raise MissingExtraError(f"the value {value!r}", extra="yaml", package="pyyaml")
    return [_scalar(entry.strip()) for entry in _LIST_ENTRY.findall(_COMMENT.sub("", value).strip()[1:-1])]


def _scalar(value: str) -> str:
    if value.startswith(_NEEDS_YAML):
        raise MissingExtraError(f"the value {value!r}", extra="yaml", package="pyyaml")
    if value.startswith('"'):
        return _quoted(r'"((?:[^"\\]|\\["\\])*)"', value, lambda text: re.sub(r'\\(["\\])', r"\1", text))
    if value.startswith("'"):
        return _quoted(r"'((?:[^']|'')*)'", value, lambda text: text.replace("''", "'"))
    return _COMMENT.sub("", value).strip()


def _quoted(pattern: str, value: str, unescape: Any) -> str:
    match = re.fullmatch(pattern + r"(?:\s+#.*|\s*)", value)
    if match is None:
        raise MissingExtraError(f"the value {value!r}", extra="yaml", package="pyyaml")
    return str(unescape(match[1]))
