import pytest

from stscurate.methods.mail import without_mail_tail


@pytest.mark.parametrize(
    ("mail", "kept"),
    [
        ("Yes.\n\nOn Mon, 3 Apr 2023 at 10:00, Jo <jo@example.org> wrote:\n\n> Is it?\n> Really?\n", "Yes.\n"),
        ("Yes.\nOn Mon, 3 Apr 2023 at 10:00, Jo\n<notifications@example.org> wrote:\n> Is it?", "Yes."),
        ("Am Mo., 3. Apr. 2023 um 10:00 schrieb Jo:\n> Ist es so?\n\nJa, so ist es.", "Ja, so ist es."),
        ("Yes.\n-----Original Message-----\nFrom: Jo\nIs it?", "Yes."),
        ("Yes.\n\nReply to this email directly or view it on GitHub:\nhttps://...", "Yes.\n"),
        ("Yes.\n\nSent from my telephone", "Yes.\n"),
        ("Yes.\r\n-- \r\nJo Doe\r\n+1 555 0100", "Yes."),
        ("A list\n-- \n" + "\n".join(f"line {n}" for n in range(12)), None),
        ("> quoted\n\nNo mail, an answer below.", None),
        ("The manual says:\n> so", None),
        ("-- \nwhat begins with it", ""),
    ],
)
def test_what_mail_adds_goes_and_other_quotations_stay(mail: str, kept: str | None) -> None:
    assert without_mail_tail(mail) == (mail if kept is None else kept)
