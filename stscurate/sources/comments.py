"""Duplicate links of an issue: GitHub's own marks, else what its comments say, once their Markdown is parsed.

Tier 1: "Duplicate of #1" alone on its line, the form that GitHub itself acts on, said by someone with standing.
Tier 2: other words ("closing as a dup of #1") by someone with standing. Tier 3: said by others, or with a hedge.
Standing have owners, members and collaborators (as GitHub lists them today, which isn't that day's list), and
whoever closed the issue within ten minutes. Questions, negations, quotations and code give no link.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from stscurate.methods.mail import without_mail_tail
from stscurate.methods.references import Claim, find_claims, find_references, mark_references
from stscurate.records import Tally
from stscurate.sources.dumps import Comment, Issue, Mark

_PARSER = MarkdownIt("commonmark").enable("strikethrough")
_LEFT_OUT = {"blockquote_open": 1, "blockquote_close": -1, "s_open": 1, "s_close": -1}
_STRUCK = re.compile(r"<(/?)(?:s|del|strike)>", re.IGNORECASE)
_STANDING = {"OWNER", "MEMBER", "COLLABORATOR"}
_BEFORE, _AFTER = timedelta(minutes=1), timedelta(minutes=10)  # people close first and explain, or the reverse

_CONTEXT = 200  # characters of a sentence read on each side of a claim
_END_OF_SENTENCE = re.compile(r"[.!?。！？…]+[\"')\]]{0,3}(?=\s|$)|[。！？]|\n(?=[A-Z\x02/])")
_ALONE = re.compile(r"duplicate of \x02\d+\x03", re.IGNORECASE)
_REST_OF_LINE = re.compile(r"[ .!]*(?:\n|$)")
_NEGATION = re.compile(
    r"(?:(?<!than )\b(?:not|never|no|nor|neither|hardly|without|unmark\w*|remov\w+|rather than|instead of|cannot)\b"
    r"|n['’]t\b|\bnon-|不是|并非|并不|不算|没有)(?:[ \n]?[\w'’*]+){0,6}[ \n]?[\"'(*]{0,2}$",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\b(?:is|isn['’]t|was|are|could|would|can|might) (?:this|it|that|these|they)\b(?! \w+ed)"
    r"|\bwonder|\bwhether\b|吗|是不是|是否",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:possibl[ey]|maybe|may|perhaps|might|could|would|should|if|unless|until|suspect|arguabl[ey]|unsure|sure"
    r"|potential|related|similar|sort of|kind of|semi|partial(?:ly)?|partly|near|almost(?! certainly)|half|example"
    r"|case|parts?|comment|snippet|second|first|latter|former|other|another)\b|或许|可能|也许|疑似|好像|似乎",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:think|believe|guess|looks?|seems?|appears?|probabl[ey]|likely|presumabl[ey]|sounds?)\b", re.IGNORECASE
)
_AFTERTHOUGHT = re.compile(
    r"\W{0,3}(?:but )?(?:I (?:think|believe|guess|suspect)|may ?be|perhaps|possibly|probably|sort of|kind of|it seems"
    r"|most likely|or (?:something|related|similar))\b",
    re.IGNORECASE,
)
_OTHER_SUBJECT = re.compile(
    r"\x02(\d+)\x03(?: ?(?:,|and|&) ?\x02\d+\x03)*(?: \([^()]{0,80}\))?(?: [\w'’-]+){0,3}? "
    r"(?:is|was|are|were|as|be|being|looks?|seems?|appears?)\b[^,;:()\x02]{0,40}$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:this|it|which|that)(?: issue| one| bug)?(?:['’]s)?\b", re.IGNORECASE)


class Link(NamedTuple):
    """A duplicate link: the issue it was said of is a duplicate of `repository`#`number`."""

    repository: str
    number: int
    tier: int
    evidence: str  # event, state_reason, comment
    association: str | None  # of whoever said so, where that is known
    at: datetime | None


def duplicate_links(issue: Issue, tally: Tally, *, moved: Mapping[str, str] | None = None) -> list[Link]:
    """The links that GitHub's marks of an issue give, else its comments: one a target, the surest that names it.

    A mark that was taken back takes its target out of the comments' too. moved: as in `find_references`. What is
    left out is counted under "claims".
    """
    links = [Link(mark.repository, mark.number, 1, mark.evidence, None, mark.at) for mark in _standing(issue, tally)]
    if not links:
        taken_back = {(mark.repository, mark.number) for mark in issue.marks if not mark.standing}
        for link in _said(issue, tally, moved):
            if (link.repository, link.number) in taken_back:
                tally.count("claims", "unmarked")
            else:
                links.append(link)
    return sorted(links, key=lambda link: (link.repository, link.number))


def _standing(issue: Issue, tally: Tally) -> Iterator[Mark]:
    for mark in issue.marks:
        if mark.standing and (mark.repository, mark.number) == (issue.repository, issue.number):
            tally.count("claims", "self_link")
        elif mark.standing:
            yield mark


def _said(issue: Issue, tally: Tally, moved: Mapping[str, str] | None) -> list[Link]:
    links: dict[tuple[str, int], Link] = {}
    denied: set[tuple[str, int]] = set()
    for comment, claim, verdict in _claims(issue, tally, moved):
        tally.count("claims", verdict)
        if verdict == "negation":
            denied.update(claim.targets)
        elif verdict not in ("question", "about_another_issue"):
            tier = _tier(verdict, comment, issue)
            for target in claim.targets:
                if target == (issue.repository, issue.number):
                    tally.count("claims", "self_link")
                elif target not in links or tier < links[target].tier:
                    links[target] = Link(*target, tier, "comment", comment.association, comment.at)
    for target in denied & links.keys():
        tally.count("claims", "disputed")
        if links[target].tier == 3:
            del links[target]
        else:
            links[target] = links[target]._replace(tier=3)
    return list(links.values())


def _claims(issue: Issue, tally: Tally, moved: Mapping[str, str] | None) -> Iterator[tuple[Comment, Claim, str]]:
    for comment in issue.comments:
        lower = comment.body.lower()
        if "dup" not in lower and "重复" not in lower:
            continue
        if comment.is_bot:
            tally.count("comments", "by_bots_left_out")
            continue
        tally.count("comments", "parsed")
        for paragraph in paragraphs(without_mail_tail(comment.body), issue.repository):
            for claim, verdict in judged_claims(paragraph, issue, moved):
                yield comment, claim, verdict


def paragraphs(markdown: str, repository: str = "") -> Iterator[str]:
    """The running text of each paragraph, heading and cell: no quotation, code, image, HTML or struck-out text.

    A link to an issue stands as "owner/name#number" in the place of its text.
    """
    quoted = 0
    for token in _PARSER.parse(markdown):
        quoted += _LEFT_OUT.get(token.type, 0)
        if token.type == "inline" and not quoted:
            yield "".join(_running_text(token.children or [], repository))


def _running_text(tokens: list[Token], repository: str) -> Iterator[str]:
    struck = 0
    reference = None
    for token in tokens:
        struck += _LEFT_OUT.get(token.type, 0)
        tag = _STRUCK.fullmatch(token.content) if token.type == "html_inline" else None
        struck += (-1 if tag[1] else 1) if tag else 0
        if struck:
            continue
        if token.type == "link_open":
            reference = next(find_references(str(token.attrGet("href") or ""), repository), None)
        elif token.type == "link_close" and reference:
            yield f" {reference.repository}#{reference.number} "
            reference = None
        elif token.type == "text" and (not reference or "dup" in token.content.lower()):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.type in ("code_inline", "image"):
            yield " "


def judged_claims(paragraph: str, issue: Issue, moved: Mapping[str, str] | None = None) -> Iterator[tuple[Claim, str]]:
    """Each claim of a paragraph with what its sentence makes of it.

    The verdict: "alone" on its line, "said", "weakly_said", "doubted", "negation", "question", "about_another_issue".
    """
    marked, issues = mark_references(paragraph, issue.repository, moved)
    ends = [match.end() for match in _END_OF_SENTENCE.finditer(marked)]
    for claim in find_claims(marked, issues):
        first = bisect_right(ends, claim.start)
        last = bisect_left(ends, claim.stop)
        before = marked[ends[first - 1] if first else 0 : claim.start][-_CONTEXT:]
        after = marked[claim.stop : ends[last] if last < len(ends) else len(marked)][:_CONTEXT]
        alone = not marked[marked.rfind("\n", 0, claim.start) + 1 : claim.start].strip() and bool(
            _ALONE.fullmatch(marked[claim.start : claim.stop])
        )
        if alone and _REST_OF_LINE.match(marked, claim.stop):
            yield claim, "question" if "?" in after else "alone"
        elif _about_another(before, issues, issue):
            yield claim, "about_another_issue"
        else:
            yield claim, _verdict(claim, before, after)


def _about_another(before: str, issues: list[tuple[str, int]], issue: Issue) -> bool:
    subject = _OTHER_SUBJECT.search(before)
    return bool(
        subject and not _PRONOUN.search(subject[0]) and issues[int(subject[1])] != (issue.repository, issue.number)
    )


def _verdict(claim: Claim, before: str, after: str) -> str:
    if "?" in after or "？" in after or "吗" in after or _QUESTION.search(before):
        return "question"
    if _NEGATION.search(before):
        return "negation"
    thought = _AFTERTHOUGHT.match(after)
    around = f"{before} {thought[0] if thought else ''}"
    if claim.plural or _DOUBT.search(around):
        return "doubted"
    return "weakly_said" if _WEAK.search(around) else "said"


def closes(comment: Comment, issue: Issue) -> bool:
    """Whether the comment's author closed the issue with it.

    Where the dump doesn't say who closed it, whoever spoke within the ten minutes before did, unless it was the
    issue's own author.
    """
    return comment.at is not None and any(
        -_BEFORE <= when - comment.at <= _AFTER and (who == comment.author if who else comment.author != issue.author)
        for who, when in issue.closings
    )


def _tier(verdict: str, comment: Comment, issue: Issue) -> int:
    closed = closes(comment, issue)
    standing = closed or comment.association in _STANDING
    if not standing or verdict == "doubted" or (verdict == "weakly_said" and not closed):
        return 3
    return 1 if verdict == "alone" else 2
