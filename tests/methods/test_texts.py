import pytest

from stscurate.methods.texts import Cleaned, clean_issue, normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Ａ\u00a0B\n\tc ", "a b c"),
        ("Straße ﬁle", "strasse file"),
        ("日本\u3000語", "日本 語"),
        ("", ""),
    ],
)
def test_normalise_joins_what_differs_in_form_only(text: str, expected: str) -> None:
    assert normalise(text) == expected
    assert normalise(expected) == expected


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("a <!-- hidden --> b", "a b"),
        ("<!-- over\nseveral\n``` lines\n-->\nkept", "kept"),
        ("<!-- form one --><!-- form two -->\nkept", "kept"),
        ("kept\n\n<!-- never closed\nhidden", "kept"),
        ("x <!-- never closed, in a line", "x <!-- never closed, in a line"),
        ("- [x] I searched\n- [ ] This is no duplicate\n- [link](url) stays\n* [X] ", "- [link](url) stays"),
        ("- [x] Fix the search box\n- [ ] No docs\n- [x] Yes", "- Fix the search box\n- No docs"),
        ("- [x] By submitting this I agree\n- [x] I'm on the latest release\n- [x] No similar issues exist", ""),
        ("To do:\n- [x] floats\n  - [ ] doubles\n- [ ](url)", "To do:\n- floats\n  - doubles\n- [ ](url)"),
        ('see ![the window](https://example.org/a.png "t") here', "see the window here"),
        ("before\n![image](https://github.com/user-attachments/assets/1-2)\nafter", "before\nafter"),
        ("![Screenshot from 2024-01-02 10-11-12.png](https://user-images.githubusercontent.com/1/2.png)", ""),
        ("https://user-images.githubusercontent.com/1/2.mp4\nshows it", "shows it"),
        ('<img width="200" alt="the window" src="x.png">', "the window"),
        ("<img src='x.png'/>", ""),
        ("<details><summary>Logs</summary>\nkept\n</details>", "Logs\nkept"),
        ("`<details>` and Vec<String>", "`<details>` and Vec<String>"),
        ("a  b   c\n\n\n\nd\r\ne", "a b c\n\nd\ne"),
        ("---\nkept\n\n---\n", "kept"),
        ("```html\n<!-- code   stays -->\n- [x] too\n```", "```html\n<!-- code   stays -->\n- [x] too\n```"),
        ("kept\n```\n\n```\n", "kept"),
        ("```\nroot@host.example.com:~# ls", "```\n[email-1]:~# ls"),
        ("مرحبا 👩‍👩‍👧 שלום", "مرحبا 👩‍👩‍👧 שלום"),
        ("x" * 250, "x" * 100 + "[150 characters cut]"),
        ("", ""),
    ],
)
def test_cleaning_keeps_what_the_reporter_wrote(markdown: str, expected: str) -> None:
    assert clean_issue("", markdown).text == expected


def test_a_whole_issue_reads_like_what_was_meant() -> None:
    body = (
        "<!-- Please fill this in. -->\r\n- [x] I have searched the issues\r\n\r\n"
        "Since @jo-doe's change, `hedge run` fails on 81.169.145.78:\r\n\r\n"
        "```\r\nTraceback (most recent call last):\r\n"
        + "".join(f'  File "/home/ada/app/m{n}.py", line {n}, in f{n}\r\n    g{n}()\r\n' for n in range(12))
        + "ValueError: no such queue\r\n```\r\n\r\n@JO-DOE, mail me: ada@example.org\r\n"
        "token ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bD0fG3iJ6\r\n"
    )
    cleaned = clean_issue("  Worker   fails ![image](x.png)", body)
    assert cleaned == Cleaned(
        "Worker fails\n\n"
        "Since @user-1's change, `hedge run` fails on [ip-1]:\n\n"
        "```\nTraceback (most recent call last):\n"
        '  File "/home/user-2/app/m0.py", line 0, in f0\n    g0()\n'
        '  File "/home/user-2/app/m1.py", line 1, in f1\n    g1()\n'
        '  File "/home/user-2/app/m2.py", line 2, in f2\n'
        "[14 lines cut]\n"
        "    g9()\n"
        '  File "/home/user-2/app/m10.py", line 10, in f10\n    g10()\n'
        '  File "/home/user-2/app/m11.py", line 11, in f11\n    g11()\n'
        "ValueError: no such queue\n```\n\n@user-1, mail me: [email-1]\n"
        "token [github-token-1]",
        removed=["checkbox", "code"],
        replaced=["GitHub token", "email", "ip", "user"],
    )


def test_cleaning_a_cleaned_text_changes_nothing() -> None:
    text = clean_issue("T", "@a and @b\n" + "\n".join(f"12:00:{n:02} INFO n{n}" for n in range(30))).text
    title, _, body = text.partition("\n\n")
    assert clean_issue(title, body).text.replace("user-1-", "user-") == text
