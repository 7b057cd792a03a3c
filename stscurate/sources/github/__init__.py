"""Issues from GitHub itself: what to ask, in the cheapest order, down to the records that dumps give too."""

from stscurate.sources.github.plan import Plan, make_plans
from stscurate.sources.github.preflight import check_repositories, write_list
from stscurate.sources.github.repositories import describe
from stscurate.sources.github.stage import collect_from_github

__all__ = ["Plan", "check_repositories", "collect_from_github", "describe", "make_plans", "write_list"]
