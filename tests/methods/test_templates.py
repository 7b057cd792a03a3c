import random

import pytest

from stscurate.methods.templates import LineCounts, Template, without_template

FORM = """**Describe the bug**
{what}

**To reproduce**
{steps}

**Environment**
- OS: {system}
- Version: {version}
- Browser [e.g. chrome, safari]

```
Paste the log of the server here
```

## Additional context

{more}

Thank you for taking the time to fill this in!"""
UNFILLED = {
    "what": "A clear and concise description of what the bug is.",
    "steps": "1. Go to '...'\n2. Click on '....'\n3. See error",
    "system": "[e.g. Linux]",
    "version": "",
    "more": "Add any other context about the problem here.",
}


def template(*bodies: str) -> Template:
    counts = LineCounts()
    for body in bodies:
        counts.add("o/r", body)
    return counts.templates().get("o/r", Template({}))


SHARED = template(*[FORM.format(**UNFILLED)] * 7, *[FORM.format(**UNFILLED | {"system": "Windows 11"})] * 7)


def cleaned(body: str, shared: Template = SHARED) -> str:
    return without_template(f"Title\n\n{body}", shared).removeprefix("Title").lstrip("\n")


def test_an_unfilled_form_says_nothing() -> None:
    assert cleaned(FORM.format(**UNFILLED)) == ""


def test_answers_stay_under_their_headings_and_the_rest_goes() -> None:
    filled = UNFILLED | {
        "what": "The export stops half-way.\n" + UNFILLED["what"],
        "steps": "1. Go to the list\n2. Click on 'Export'\n3. See error",
        "system": "Windows 11",
        "version": "1.5",
    }
    assert cleaned(FORM.format(**filled)) == (
        "**Describe the bug**\nThe export stops half-way.\n\n"
        "**To reproduce**\n1. Go to the list\n2. Click on 'Export'\n3. See error\n\n"
        "**Environment**\n- OS: Windows 11\n- Version: 1.5"
    )


def test_a_heading_stays_for_the_code_and_the_subheadings_below_it() -> None:
    shared = template(*["## Report\n\n### Steps\n\n### Log\n\nOutput:\n\nWhat went wrong, in your own words?"] * 5)
    assert (
        cleaned("## Report\n\n### Steps\n\n### Log\n\n```\nboom\n```", shared)
        == "## Report\n\n### Log\n\n```\nboom\n```"
    )
    assert cleaned("## Report\n\n### Steps\n\nOutput:\n\n    boom", shared) == (
        "## Report\n\n### Steps\n\nOutput:\n\n    boom"
    )
    assert cleaned("## Report\n\n### Mine\n\n### Log\n", shared) == "## Report\n\n### Mine"


def test_short_lines_that_many_write_stay() -> None:
    shared = template(*["It fails.\n\nThanks!\n\nRust 1.5\n\n---\n\n```\nfn main() {}\n```"] * 9)
    body = "It fails.\n\nThanks!\n\nRust 1.5\n\nBut not on Sundays.\n\n```\nfn main() {}\n```"
    assert cleaned(body, shared) == body


def test_a_label_with_a_common_answer_stays_and_one_with_a_hint_goes() -> None:
    shared = template(*["Rust version: 1.5\nLink: paste the link to the gist here"] * 9)
    assert cleaned("Rust version: 1.5\nLink: paste the link to the gist here", shared) == "Rust version: 1.5"
    assert cleaned("Link: https://example.org/paste", shared) == "Link: https://example.org/paste"


def test_boxes_and_addresses_count_as_the_same_line_ticked_or_not_and_hidden_or_not() -> None:
    shared = template(*["- [ ] Linux\n- [x] macOS\n- [ ] Windows\n\nMail security@example.org about leaks"] * 5)
    assert cleaned("Words.\n\n- Linux\n- macOS\n- Windows\n\nMail [email-1] about leaks", shared) == "Words."


def test_what_a_form_writes_for_nothing_goes_where_nothing_is_shared() -> None:
    body = "### What happened\n\nIt broke.\n\n### Log\n\n_No response_"
    assert cleaned(body, Template({})) == "### What happened\n\nIt broke."
    assert cleaned(body, template("### Other")) == "### What happened\n\nIt broke."


@pytest.mark.parametrize(("issues", "shares", "found"), [(5, 5, True), (5, 4, False), (900, 9, True), (900, 8, False)])
def test_shared_is_one_percent_and_five_at_least(issues: int, shares: int, found: bool) -> None:
    line = "Please tell us what happened"
    bodies = [f"{line}\n{n}" if n < shares else f"words of number {n}" for n in range(issues)]
    assert bool(template(*bodies).lines) == found


def test_a_line_twice_in_an_issue_counts_once_and_repositories_are_apart() -> None:
    counts = LineCounts()
    for repository in ("o/r", "o/s"):
        for _ in range(4):
            counts.add(repository, "The same line again\nThe same line again")
    assert counts.templates() == {}


def test_forgetting_keeps_what_is_shared_and_bounds_the_memory() -> None:
    rng = random.Random(0)
    bodies = [f"Please describe what happened here\n{rng.random()}\n{rng.random()}" for _ in range(2_000)]
    counts = LineCounts(most=300)
    for body in bodies:
        counts.add("o/r", body)
        assert sum(map(len, counts._lines.values())) <= 300
    (shared,) = counts.templates()["o/r"].lines.values()
    assert shared == 2_000
