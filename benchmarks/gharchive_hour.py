"""A made-up hour of GH Archive: every word of it written or drawn here, in the sizes and the mix of a real one.

The mix of event types is that of 29,999 consecutive public events which github.com/mtsmfm/gh-deck
counted in its issue 10 (May 2018). The payloads have the fields of before October 2025, the larger ones. Assumed, for
want of a public count: half of the comments stand under pull requests; texts are as long as those of a large tracker.
"""

import argparse
import base64
import gzip
import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

MIX = {
    "PushEvent": 17119,
    "CreateEvent": 4166,
    "WatchEvent": 2486,
    "IssueCommentEvent": 1644,
    "PullRequestEvent": 1412,
    "IssuesEvent": 984,
    "ForkEvent": 735,
    "DeleteEvent": 717,
    "PullRequestReviewCommentEvent": 274,
    "GollumEvent": 170,
    "MemberEvent": 114,
    "ReleaseEvent": 99,
    "CommitCommentEvent": 55,
    "PublicEvent": 24,
}
Thing = dict[str, Any]
_API, _WEB = "https://api.github.com", "https://github.com"
_START = datetime(2024, 3, 5, 15, tzinfo=UTC)
_USER = (
    "followers following{/other_user} gists{/gist_id} starred{/owner}{/repo} subscriptions orgs repos events{/privacy}"
)
_OF_REPOSITORY = """archive_url{archive_format}{/ref} assignees{/user} blobs{/sha} branches{/branch}
collaborators{/collaborator} comments{/number} commits{/sha} compare{/base}...{/head} contents{/+path} contributors
deployments downloads events forks git_commits{/sha} git_refs{/sha} git_tags{/sha} hooks issue_comment{/number}
issue_events{/number} issues{/number} keys{/key_id} labels{/name} languages merges milestones{/number}
notifications{?since,all,participating} pulls{/number} releases{/id} stargazers statuses{/sha} subscribers subscription
tags teams trees{/sha}""".split()  # noqa: SIM905 - more lines than text otherwise
_SYLLABLES = "ba ce di fo gu la me ni po ru sa te vi wo zu ark ent ing ost ull qua ster th ch pl".split()  # noqa: SIM905


def write_hour(path: Path, *, events: int, duplicates: float = 0.01, seed: int = 0) -> int:
    """Write so many events as NDJSON in gzip (level 6, as the archive); the bytes before compression.

    duplicates: share of the comments on issues that call the issue a duplicate of another; as many use the word in
    another sense.
    """
    size = 0
    with gzip.open(path, "wb", compresslevel=6) as file:
        for event in hour(events=events, duplicates=duplicates, seed=seed):
            line = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
            size += file.write(line)
    return size


def hour(*, events: int, duplicates: float, seed: int) -> Iterator[Thing]:
    """The events in the order of their time."""
    made = _Maker(random.Random(seed), duplicates)
    kinds = made.rng.choices(list(MIX), list(MIX.values()), k=events)
    for at, kind in enumerate(kinds):
        made.now = _START + timedelta(seconds=3600 * at // events)
        yield made.event(kind)


class _Maker:
    def __init__(self, rng: random.Random, duplicates: float):
        self.rng = rng
        self.duplicates = duplicates
        self.now = _START
        self.words = ["".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3)))) for _ in range(8_000)]
        self.often = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        self.logins = [
            f"{self.word()}{rng.choice(('', '-', '0'))}{self.word()}{rng.randint(1, 99)}" for _ in range(40_000)
        ]
        self.repositories = [
            (rng.randint(10**6, 10**9), f"{rng.choice(self.logins)}/{self.word()}") for _ in range(30_000)
        ]
        self.busy = self.repositories[:3_000]  # these have the issues and the pull requests

    def word(self) -> str:
        return self.rng.choice(self.words)

    def text(self, median: float) -> str:
        """Words with line ends, backquotes and quotation marks; lengths as different as people's."""
        wanted = min(int(self.rng.lognormvariate(0, 0.9) * median) + 1, 8_000)
        words = self.rng.choices(self.words, cum_weights=self.often, k=wanted)
        for at in range(9, wanted, 17):
            words[at] += self.rng.choice(
                (".\r\n", "\r\n\r\n", ", `x = 1`", ' "quoted"', "\n- ", ": https://example.org/")
            )
        return " ".join(words)

    def sha(self) -> str:
        return self.rng.randbytes(20).hex()

    def time(self, days: int = 0) -> str:
        back = timedelta(seconds=self.rng.randint(0, days * 86_400)) if days else timedelta(0)
        return (self.now - back).strftime("%Y-%m-%dT%H:%M:%SZ")

    def node(self) -> str:
        return base64.b64encode(self.rng.randbytes(12)).decode()

    def user(self) -> Thing:
        login, number = self.rng.choice(self.logins), self.rng.randint(10**5, 10**8)
        links = {f"{name.split('{')[0]}_url": f"{_API}/users/{login}/{name}" for name in _USER.split()}
        named = {"login": login, "id": number, "node_id": self.node(), "gravatar_id": ""}
        named["avatar_url"] = f"https://avatars.githubusercontent.com/u/{number}?v=4"
        named |= {"url": f"{_API}/users/{login}", "html_url": f"{_WEB}/{login}"}
        return (
            named
            | links
            | {"received_events_url": f"{_API}/users/{login}/received_events", "type": "User", "site_admin": False}
        )

    def repository(self, number: int, name: str) -> Thing:
        links = {f"{link.split('{')[0]}_url": f"{_API}/repos/{name}/{link}" for link in _OF_REPOSITORY}
        about = {"id": number, "node_id": self.node(), "name": name.split("/")[1], "full_name": name, "private": False}
        about |= {"owner": self.user(), "html_url": f"{_WEB}/{name}", "description": self.text(8), "fork": False}
        counts = {key: self.rng.randint(0, 999) for key in ("size", "stargazers_count", "forks_count", "open_issues")}
        times = {key: self.time(2_000) for key in ("created_at", "updated_at", "pushed_at")}
        rest = {"language": "Python", "default_branch": "main", "archived": False, "topics": [self.word(), self.word()]}
        return about | links | times | counts | rest

    def event(self, kind: str) -> Thing:
        of_issues = kind.startswith(("Issue", "PullRequest"))
        repository = self.rng.choice(self.busy if of_issues else self.repositories)
        login, number = self.rng.choice(self.logins), self.rng.randint(10**5, 10**8)
        actor = {
            "id": number,
            "login": login,
            "display_login": login,
            "gravatar_id": "",
            "url": f"{_API}/users/{login}",
        }
        actor["avatar_url"] = f"https://avatars.githubusercontent.com/u/{number}?"
        event: Thing = {"id": str(self.rng.randint(3 * 10**10, 4 * 10**10)), "type": kind, "actor": actor}
        event["repo"] = {"id": repository[0], "name": repository[1], "url": f"{_API}/repos/{repository[1]}"}
        event |= {"payload": self.payload(kind, *repository), "public": True, "created_at": self.time()}
        if self.rng.random() < 0.3:
            event["org"] = {key: value for key, value in actor.items() if key != "display_login"}
        return event

    def payload(self, kind: str, number: int, name: str) -> Thing:
        makers: dict[str, Callable[[], Thing]] = {
            "PushEvent": lambda: self.push(name),
            "IssuesEvent": lambda: self.of_issue(name),
            "IssueCommentEvent": lambda: self.comment(name),
            "PullRequestEvent": lambda: {"action": "opened", "pull_request": self.pull(number, name)},
            "PullRequestReviewCommentEvent": lambda: {
                "comment": {"diff_hunk": self.text(80), "body": self.text(20), "user": self.user()},
                "pull_request": self.pull(number, name),
            },
            "ForkEvent": lambda: {"forkee": self.repository(number, name)},
            "ReleaseEvent": lambda: {"release": {"author": self.user(), "tag_name": "v1", "body": self.text(150)}},
            "MemberEvent": lambda: {"member": self.user(), "action": "added"},
            "CommitCommentEvent": lambda: {"comment": {"user": self.user(), "body": self.text(20)}},
            "CreateEvent": lambda: {"ref": self.word(), "ref_type": "branch", "description": self.text(8)},
            "DeleteEvent": lambda: {"ref": self.word(), "ref_type": "branch", "pusher_type": "user"},
        }
        return makers.get(kind, lambda: {"action": "started"})()

    def of_issue(self, name: str) -> Thing:
        issue = self.issue(name, self.rng.choice(("open", "open", "closed")))
        closed = issue["state"] == "closed"
        return {"action": "closed" if closed else self.rng.choice(("opened", "opened", "reopened")), "issue": issue}

    def push(self, name: str) -> Thing:
        commits = []
        for _ in range(self.rng.choice((1, 1, 1, 1, 2, 3))):
            author = {"email": f"{self.sha()[:12]}@example.org", "name": f"{self.word()} {self.word()}"}
            sha = self.sha()
            commits.append({"sha": sha, "author": author, "message": self.text(6), "distinct": True})
            commits[-1]["url"] = f"{_API}/repos/{name}/commits/{sha}"
        size = {"push_id": self.rng.randint(10**10, 2 * 10**10), "size": len(commits), "distinct_size": len(commits)}
        return size | {"ref": "refs/heads/main", "head": self.sha(), "before": self.sha(), "commits": commits}

    def issue(self, name: str, state: str) -> Thing:
        number = self.rng.randint(1, 5_000)
        url = f"{_API}/repos/{name}/issues/{number}"
        links = {"url": url, "repository_url": f"{_API}/repos/{name}", "labels_url": f"{url}/labels{{/name}}"}
        links |= {
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"{_WEB}/{name}/issues/{number}",
        }
        label = {
            "id": number,
            "url": f"{_API}/repos/{name}/labels/bug",
            "name": "bug",
            "color": "ee0701",
            "default": True,
        }
        named = {"id": self.rng.randint(10**8, 10**9), "node_id": self.node(), "number": number, "title": self.text(7)}
        said = {"user": self.user(), "labels": [label] * self.rng.choice((0, 0, 1, 2)), "state": state, "locked": False}
        rest: Thing = {
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": 3,
            "author_association": "NONE",
        }
        times = {
            "created_at": self.time(90),
            "updated_at": self.time(),
            "closed_at": self.time() if state == "closed" else None,
        }
        return (
            links
            | named
            | said
            | rest
            | times
            | {"body": self.text(110), "reactions": self.reactions(url), "state_reason": None}
        )

    def reactions(self, url: str) -> Thing:
        return {"url": f"{url}/reactions", "total_count": 0} | dict.fromkeys(
            ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"), 0
        )

    def comment(self, name: str) -> Thing:
        issue = self.issue(name, self.rng.choice(("open", "closed")))
        if self.rng.random() < 0.5:
            url = f"{_API}/repos/{name}/pulls/{issue['number']}"
            issue["html_url"] = f"{_WEB}/{name}/pull/{issue['number']}"
            issue |= {"draft": False, "pull_request": {"url": url, "diff_url": f"{url}.diff", "merged_at": None}}
        body = self.text(28)
        drawn = self.rng.random()
        if drawn < self.duplicates:
            body = f"Duplicate of #{self.rng.randint(1, 5_000)}\n\n{body}"
        elif drawn < 2 * self.duplicates:
            body += " It sends the requests in duplicate."
        number = self.rng.randint(10**8, 10**9)
        said: Thing = {
            "url": f"{_API}/repos/{name}/issues/comments/{number}",
            "html_url": f"{_WEB}/{name}#{number}",
            "id": number,
        }
        said |= {"node_id": self.node(), "user": self.user(), "created_at": self.time(), "updated_at": self.time()}
        said |= {
            "author_association": self.rng.choice(("NONE", "NONE", "MEMBER")),
            "body": body,
            "performed_via_github_app": None,
        }
        return {"action": "created", "issue": issue, "comment": said | {"reactions": self.reactions(said["url"])}}

    def pull(self, number: int, name: str) -> Thing:
        issue = self.issue(name, "open")
        ends = {
            end: {
                "label": f"x:{end}",
                "ref": end,
                "sha": self.sha(),
                "user": self.user(),
                "repo": self.repository(number, name),
            }
            for end in ("head", "base")
        }
        links = {link: {"href": f"{issue['url']}/{link}"} for link in ("self", "html", "issue", "comments", "commits")}
        counts = {key: self.rng.randint(0, 99) for key in ("commits", "additions", "deletions", "changed_files")}
        return issue | ends | {"_links": links, "merged": False, "merge_commit_sha": self.sha()} | counts


def main() -> None:
    """Write an hour and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--events", type=int, default=180_000)
    parser.add_argument("--duplicates", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    size = write_hour(given.path, events=given.events, duplicates=given.duplicates, seed=given.seed)
    print(
        f"{given.path}: {given.events:,} events, {size / 1e6:.0f} MB, {given.path.stat().st_size / 1e6:.0f} MB packed"
    )


if __name__ == "__main__":
    main()
