"""A local GitHub: a real HTTP server on loopback that executes every query against GitHub's own GraphQL schema."""

from tests.local_github.server import LocalGitHub

__all__ = ["LocalGitHub"]
