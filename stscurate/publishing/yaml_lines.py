"""YAML of a person's, in which some keys get other values: its lines are edited, so that the rest stays to the byte.

Writing it anew from its data would lose comments, quotes and the order, and make 1.10 of a version 1.1.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from stscurate.errors import InputError

OUR_CONFIGS = frozenset({"pairs", "pair-class", "gis", "triplets", "provenance", "ids"})
_OUR_FIELDS = frozenset({"config_name", "data_files", "default", "features", "splits", "download_size", "dataset_size"})
_MEND = "mend it, or take the lines between the two --- out"
_Span = tuple[str, int, int]  # key, and where its lines begin and end


class StrictLoader(yaml.SafeLoader):
    """YAML that says a key twice means two things: PyYAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping, or a YAMLError that names the key and its place."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def merge_yaml(old: str, new: str, newline: str) -> str:
    """The YAML `old` with the keys that `new` has at its top level, and their values there.

    Where a value is the same already, its lines stay; comments within lines that change go above them. Lists of tags
    and configs keep what others put there (`_merged`). InputError where the old YAML can't be read, repeats a key, or
    is written so that lines can't be edited.
    """
    before, ours = _nodes(old), _nodes(new)
    wanted = {key: _merged(key, before.get(key), node) for key, node in ours.items()}
    spans = list(_key_spans(old))
    indent = " " * (spans[0][1] - _line_start(old, spans[0][1])) if spans else ""
    parts, at = [], 0
    for key, start, stop in spans:
        if key in wanted and _shape(wanted[key]) != _shape(before[key]):
            line = _line_start(old, start)
            kept = "".join(f"{indent}{comment}{newline}" for comment in _comments(old, start, stop))
            parts += [old[at:line], kept, _dump(key, wanted[key], indent, newline)]
            at = stop
    rest = old[at:]
    added = "".join(_dump(key, wanted[key], indent, newline) for key in wanted if key not in before)
    merged = "".join(parts) + rest + (newline if added and rest and not rest.endswith("\n") else "") + added
    if {key: _shape(node) for key, node in _nodes(merged).items()} != {
        key: _shape(node) for key, node in {**before, **wanted}.items()
    }:
        raise InputError(
            "README.md: the YAML at its top is written so that its lines can't be edited (anchors, braces or ?): write "
            "plain lines of key: value."
        )
    return merged


def _nodes(text: str) -> dict[str, yaml.Node]:
    """The values at the top level, by key."""
    try:
        yaml.load(text, StrictLoader)  # noqa: S506 - a SafeLoader that refuses repeated keys
        root = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"README.md: the YAML at its top can't be read ({_one_line(error)}): {_MEND}.") from None
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise InputError(f"README.md: the YAML at its top isn't lines of key: value: {_MEND}.")
    return {key.value: value for key, value in root.value if isinstance(key, yaml.ScalarNode)}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _key_spans(text: str) -> Iterator[_Span]:
    """Each key of the top level, and the characters from it to the end of its value's last line."""
    root = yaml.compose(text, yaml.SafeLoader)
    if root is None:
        return
    tokens = [token for token in yaml.scan(text) if token.end_mark.index > token.start_mark.index]
    starts = [key.start_mark.index for key, _ in root.value]
    for number, (key, _) in enumerate(root.value):
        following = starts[number + 1] if number + 1 < len(starts) else len(text)
        stop = max(token.end_mark.index for token in tokens if starts[number] <= token.start_mark.index < following)
        if text[stop - 1] != "\n":
            line_end = text.find("\n", stop)
            stop = len(text) if line_end < 0 else line_end + 1
        yield str(key.value), starts[number], stop


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _comments(text: str, start: int, stop: int) -> list[str]:
    """The comments between two places: what begins with # outside of all tokens."""
    spans = [(token.start_mark.index, token.end_mark.index) for token in yaml.scan(text)]
    inside = [span for span in spans if start <= span[0] < stop]
    gaps = zip([end for _, end in inside], [begin for begin, _ in inside[1:]] + [stop], strict=True)
    return [found.rstrip() for begin, end in gaps for found in re.findall(r"#[^\r\n]*", text[begin : min(end, stop)])]


def _dump(key: str, node: yaml.Node, indent: str, newline: str) -> str:
    name = yaml.ScalarNode("tag:yaml.org,2002:str", key)
    mapping = yaml.MappingNode("tag:yaml.org,2002:map", [(name, node)])
    # by nodes, not by data: these know that a version was written 1.10
    text = yaml.serialize(mapping, Dumper=yaml.SafeDumper, allow_unicode=True, width=100)
    return "".join(f"{indent}{line}{newline}" for line in text.removesuffix("\n").split("\n"))


def _shape(node: yaml.Node) -> Any:
    """What a node says, however it is spelt."""
    if isinstance(node, yaml.MappingNode):
        return node.tag, [(_shape(key), _shape(value)) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return node.tag, [_shape(item) for item in node.value]
    return node.tag, node.value


def _merged(key: str, old: yaml.Node | None, new: yaml.Node) -> yaml.Node:
    """The value that `key` is to have: ours, and in some lists what others have put there."""
    if not isinstance(old, yaml.SequenceNode) or not isinstance(new, yaml.SequenceNode):
        return new
    if key == "tags":
        there = [_shape(item) for item in old.value]
        return _sequence([*old.value, *(item for item in new.value if _shape(item) not in there)])
    if key not in ("configs", "dataset_info"):
        return new
    ours = {_field(item, "config_name"): item for item in new.value}
    default = next((_field(item, "config_name") for item in old.value if _field(item, "default") == "true"), None)
    items = []
    for item in old.value:
        name = _field(item, "config_name")
        if name in ours:
            items.append(_with_fields_of(item, ours.pop(name)))
        elif name not in OUR_CONFIGS:
            items.append(item)
    items += ours.values()
    if default in [_field(item, "config_name") for item in items]:
        items = [_with_default(item, _field(item, "config_name") == default) for item in items]
    return _sequence(items)


def _sequence(items: list[yaml.Node]) -> yaml.Node:
    return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=False)


def _field(item: yaml.Node, name: str) -> str | None:
    if isinstance(item, yaml.MappingNode):
        for key, value in item.value:
            if key.value == name and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    return None


def _with_fields_of(old: yaml.Node, new: yaml.Node) -> yaml.Node:
    """Our entry of a config, and the fields that a person has given it."""
    theirs = [(key, value) for key, value in old.value if key.value not in _OUR_FIELDS]
    return yaml.MappingNode(new.tag, [*new.value, *theirs], flow_style=False)


def _with_default(item: yaml.Node, default: bool) -> yaml.Node:
    """The entry of a config, marked as the default one or not."""
    if not isinstance(item, yaml.MappingNode) or (_field(item, "default") == "true") == default:
        return item
    kept = [(key, value) for key, value in item.value if key.value != "default"]
    mark = (yaml.ScalarNode("tag:yaml.org,2002:str", "default"), yaml.ScalarNode("tag:yaml.org,2002:bool", "true"))
    return yaml.MappingNode(item.tag, [*kept, mark] if default else kept, flow_style=False)
