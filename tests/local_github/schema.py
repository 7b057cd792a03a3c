"""GitHub's published GraphQL schema, built once a session, and the variant that knows `duplicateOf`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from graphql import GraphQLSchema, build_schema, extend_schema, parse

SCHEMAS = Path(__file__).parent.parent.parent / ".schemas"
SDL = SCHEMAS / "graphql-schema" / "schema.graphql"
OPENAPI = SCHEMAS / "openapi" / "generated" / "api.github.com.json"

# As GitHub answers since May 2025; the published schema doesn't have it.
_DUPLICATE_OF = """
extend type Issue { duplicateOf: Issue }
extend type ClosedEvent { duplicateOf: IssueOrPullRequest }
"""


@cache
def github_schema(*, duplicate_of: bool = False) -> GraphQLSchema:
    """duplicate_of: with the fields of that name on issues and closed events.

    FileNotFoundError where scripts/fetch-schemas hasn't brought the schema.
    """
    if duplicate_of:
        return extend_schema(github_schema(), parse(_DUPLICATE_OF), assume_valid=True, assume_valid_sdl=True)
    return build_schema(SDL.read_text(encoding="utf-8"), assume_valid=True, assume_valid_sdl=True)
