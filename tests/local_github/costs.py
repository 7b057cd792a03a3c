"""What a query costs, by the formula that GitHub documents, from its text and variables alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    value_from_ast_untyped,
)

MOST_NODES = 500_000


class Cost(NamedTuple):
    points: int
    nodes: int  # the most that it may give back
    requests: int  # the points before they are divided by 100 and rounded


def cost_of(document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> Cost:
    """Each connection takes a request for each thing it hangs on, which are as many as `first` or `last` let be.

    The sum of the requests is divided by 100 and rounded; 1 at the least. The ids of `nodes` count as things.
    """
    fragments = {part.name.value: part for part in document.definitions if isinstance(part, FragmentDefinitionNode)}
    given = {
        part.variable.name.value: value_from_ast_untyped(part.default_value)
        for part in operation.variable_definitions or ()
        if part.default_value
    }
    requests, nodes = _walk(operation.selection_set.selections, 1, fragments, {**given, **variables})
    return Cost(max(1, int(requests / 100 + 0.5)), nodes, requests)


def _walk(
    selections: tuple[SelectionNode, ...],
    parents: int,
    fragments: Mapping[str, FragmentDefinitionNode],
    variables: dict[str, Any],
) -> tuple[int, int]:
    """(requests, nodes) of all connections below, for `parents` things."""
    requests = nodes = 0
    for selection in selections:
        if not _is_asked(selection, variables):
            continue
        things, below = parents, None
        if isinstance(selection, FragmentSpreadNode):
            below = fragments[selection.name.value].selection_set
        elif isinstance(selection, InlineFragmentNode):
            below = selection.selection_set
        elif isinstance(selection, FieldNode):
            below = selection.selection_set
            given = _arguments(selection, variables)
            if (size := given.get("first") or given.get("last")) is not None:
                things = parents * int(size)
                requests, nodes = requests + parents, nodes + things
            elif selection.name.value == "nodes" and "ids" in given:
                things = parents * len(given["ids"])
                nodes += things
        if below:
            more_requests, more_nodes = _walk(below.selections, things, fragments, variables)
            requests, nodes = requests + more_requests, nodes + more_nodes
    return requests, nodes


def _is_asked(selection: SelectionNode, variables: dict[str, Any]) -> bool:
    for directive in selection.directives or ():
        wanted = bool(value_from_ast_untyped(next(iter(directive.arguments or ())).value, variables))
        if directive.name.value in ("include", "skip") and wanted != (directive.name.value == "include"):
            return False
    return True


def _arguments(field: FieldNode, variables: dict[str, Any]) -> dict[str, Any]:
    return {
        argument.name.value: value_from_ast_untyped(argument.value, variables) for argument in field.arguments or ()
    }
