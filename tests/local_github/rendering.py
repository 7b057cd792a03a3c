"""Repositories, issues, comments and events as REST gives them."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from tests.local_github.things import Comment, Event, Issue, Repository, node_id, stamp

WEB = "https://github.com"
Object = dict[str, Any]

_USER_LINKS = """followers following gists starred subscriptions organizations repos events received_events"""
_REPOSITORY_LINKS = """archive assignees blobs branches collaborators comments commits compare contents contributors
deployments downloads events forks git_commits git_refs git_tags hooks issue_comment issue_events issues keys labels
languages merges milestones notifications pulls releases stargazers statuses subscribers subscription tags teams
trees"""


def user(login: str | None, url: str) -> Object | None:
    if login is None:
        return None
    here = f"{url}/users/{login}"
    return {
        "login": login,
        "id": int(hashlib.sha256(login.encode()).hexdigest()[:7], 16),
        "node_id": f"U_{login}",
        "avatar_url": f"{WEB}/{login}.png",
        "gravatar_id": "",
        "url": here,
        "html_url": f"{WEB}/{login}",
        **{f"{name}_url": f"{here}/{name}" for name in _USER_LINKS.split()},
        "type": "Bot" if login.endswith("[bot]") else "User",
        "site_admin": False,
    }


def repository(home: Repository, url: str) -> Object:
    here, owner = f"{url}/repos/{home.name}", home.name.split("/")[0]
    issues = sum(issue.state == "open" for issue in home.issues.values())
    licence = home.licence and {
        "key": home.licence.lower(),
        "name": home.licence,
        "spdx_id": home.licence,
        "url": f"{url}/licenses/{home.licence.lower()}",
        "node_id": f"L_{home.licence}",
    }
    return {
        "id": home.id,
        "node_id": node_id(home),
        "name": home.name.split("/")[1],
        "full_name": home.name,
        "owner": user(owner, url),
        "license": licence or None,
        "archived": home.archived,
        "has_issues": home.has_issues,
        "url": here,
        "html_url": f"{WEB}/{home.name}",
        **{f"{name}_url": f"{here}/{name}" for name in _REPOSITORY_LINKS.split()},
        **{f"{name}_url": f"{WEB}/{home.name}.git" for name in ("clone", "git", "ssh", "svn")},
        **dict.fromkeys(("description", "homepage", "language", "mirror_url")),
        **dict.fromkeys(("private", "fork", "disabled", "has_pages", "has_discussions"), False),
        **dict.fromkeys(("has_projects", "has_wiki", "has_downloads"), True),
        **dict.fromkeys(("forks", "watchers", "forks_count", "watchers_count", "stargazers_count", "size"), 0),
        **dict.fromkeys(("network_count", "subscribers_count"), 0),
        **dict.fromkeys(("open_issues", "open_issues_count"), issues),
        **dict.fromkeys(("created_at", "updated_at", "pushed_at"), "2020-01-01T00:00:00Z"),
        "default_branch": "main",
    }


def issue(issue: Issue, url: str) -> Object:
    home = f"{url}/repos/{issue.repository.name}"
    here = f"{home}/issues/{issue.number}"
    page = f"{WEB}/{issue.repository.name}/{'pull' if issue.pull_request else 'issues'}/{issue.number}"
    pull = {name: f"{page}{end}" for name, end in (("html_url", ""), ("diff_url", ".diff"), ("patch_url", ".patch"))}
    more = {"pull_request": {"url": f"{home}/pulls/{issue.number}", **pull}} if issue.pull_request else {}
    return {
        "id": issue.id,
        "node_id": node_id(issue),
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "user": user(issue.author, url),
        "author_association": issue.association,
        "state": issue.state,
        "state_reason": issue.reason,
        "labels": [label(name, home) for name in issue.labels],
        "comments": len(issue.comments),
        "created_at": stamp(issue.created_at),
        "updated_at": stamp(issue.updated_at),
        "closed_at": stamp(issue.closed_at) if issue.closed_at else None,
        "closed_by": user(issue.closed_by, url),
        "locked": issue.locked,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "url": here,
        "html_url": page,
        "repository_url": home,
        "labels_url": f"{here}/labels{{/name}}",
        **{f"{name}_url": f"{here}/{name}" for name in ("comments", "events", "timeline")},
        **more,
    }


def label(name: str, home: str) -> Object:
    return {
        "id": int(hashlib.sha256(name.encode()).hexdigest()[:7], 16),
        "node_id": f"LA_{name}",
        "name": name,
        "url": f"{home}/labels/{name}",
        "color": "cccccc",
        "description": None,
        "default": False,
    }


def comment(comment: Comment, url: str) -> Object:
    home = f"{url}/repos/{comment.issue.repository.name}"
    web = f"{WEB}/{comment.issue.repository.name}/issues/{comment.issue.number}#issuecomment-{comment.id}"
    return {
        "id": comment.id,
        "node_id": node_id(comment),
        "url": f"{home}/issues/comments/{comment.id}",
        "html_url": web,
        "issue_url": f"{home}/issues/{comment.issue.number}",
        "user": user(comment.author, url),
        "author_association": comment.association,
        "body": comment.body,
        "created_at": stamp(comment.at),
        "updated_at": stamp(comment.at),
    }


def timeline_item(item: Comment | Event, url: str) -> Object:
    """As REST tells it: of a mark it names no canonical issue."""
    if isinstance(item, Comment):
        return {**comment(item, url), "event": "commented", "actor": user(item.author, url)}
    event = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", item.kind.removesuffix("Event")).lower()
    more: Object = {"label": {"name": item.label, "color": "cccccc"}} if item.label else {}
    if event == "closed":
        more["state_reason"] = item.reason
    return {
        "id": item.id,
        "node_id": node_id(item),
        "url": f"{url}/repos/{item.issue.repository.name}/issues/events/{item.id}",
        "actor": user(item.actor, url),
        "event": event,
        "commit_id": None,
        "commit_url": None,
        "created_at": stamp(item.at),
        "performed_via_github_app": None,
        **more,
    }
