"""Issues from GitHub itself: what to ask, in the cheapest order, down to the records that dumps give too."""

from stscurate.sources.github.plan import Plan, make_plans
from stscurate.sources.github.stage import collect_from_github

__all__ = ["Plan", "collect_from_github", "make_plans"]
