"""A GraphQL request from its text to its answer; its errors in GitHub's form."""

from __future__ import annotations

from functools import cache
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    execute_sync,
    get_operation_ast,
    parse,
    validate,
)

from tests.local_github.costs import MOST_NODES, Cost, cost_of
from tests.local_github.fields import resolve, resolve_type
from tests.local_github.resolvers import Context

Answer = dict[str, Any]


class Query:
    """A checked request. GraphQLError: the first thing that is wrong with its text."""

    def __init__(self, schema: GraphQLSchema, request: dict[str, Any]) -> None:
        self._schema = schema
        self._variables: dict[str, Any] = request.get("variables") or {}
        self._document = _checked(schema, request["query"])
        operation = get_operation_ast(self._document, request.get("operationName"))
        if operation is None:
            raise GraphQLError("An operation name is required")
        self._operation: OperationDefinitionNode = operation
        self.cost: Cost = cost_of(self._document, operation, self._variables)

    def excess(self) -> Answer | None:
        """The error for a query that may give back too much."""
        if self.cost.nodes <= MOST_NODES:
            return None
        message = f"This query requests up to {self.cost.nodes:,} possible nodes which exceeds the maximum limit of "
        return {"type": "MAX_NODE_LIMIT_EXCEEDED", "message": f"{message}{MOST_NODES:,}."}

    def execute(self, context: Context) -> Answer:
        result = execute_sync(
            self._schema,
            self._document,
            variable_values=self._variables,
            operation_name=self._operation.name.value if self._operation.name else None,
            context_value=context,
            field_resolver=resolve,
            type_resolver=resolve_type,
        )
        for error in result.errors or ():
            if isinstance(error.original_error, Exception) and not isinstance(error.original_error, GraphQLError):
                raise error.original_error  # ours, not the client's
        answer: Answer = {"data": result.data}
        if result.errors:
            answer["errors"] = [in_github_form(error) for error in result.errors]
        return answer


@cache
def _checked(schema: GraphQLSchema, text: str) -> DocumentNode:
    document = parse(text)
    for error in validate(schema, document):
        raise error
    return document


def in_github_form(error: GraphQLError) -> Answer:
    kind = getattr(error.original_error, "type", None) or getattr(error, "type", None)
    form: Answer = {"type": kind} if kind else {}
    if error.path:
        form["path"] = error.path
    if error.locations:
        form["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    return {**form, "message": error.message}
