import pytest

from stscurate.methods.placeholders import Placeholders


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ping @some-one and @Some-One, not a@b", "ping @user-1 and @user-1, not a@b"),
        ("cc @a, @b. (@c)", "cc @user-1, @user-2. (@user-3)"),
        ("@angular/core and @my-org/team stay", "@angular/core and @my-org/team stay"),
        ("use `@property`, ` @x ` or foo(@Override())", "use `@property`, ` @x ` or foo(@Override())"),
        ("@media and @Override are no logins", "@media and @Override are no logins"),
        ("npm i foo@latest", "npm i foo@latest"),
    ],
)
def test_mentions(line: str, expected: str) -> None:
    assert Placeholders().mentions(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mail me: jo.doe+x@mail.example.com!", "mail me: [email-1]!"),
        ("a@x.org, B@x.org, A@X.ORG", "[email-1], [email-2], [email-1]"),
        ("git@github.com:o/r.git", "git@github.com:o/r.git"),
    ],
)
def test_emails(line: str, expected: str) -> None:
    assert Placeholders().emails(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from 81.169.145.78:443 to 81.169.145.78", "from [ip-1]:443 to [ip-1]"),
        ("http://93.184.215.14/x, (142.250.74.46).", "http://[ip-1]/x, ([ip-2])."),
        ("127.0.0.1 0.0.0.0 10.11.12.13 192.168.178.21 169.254.1.22", None),
        ("1.2.3.4 2.6.30.3 4.6.0.138 v81.169.145.78 version 81.169.145.78 81.169.145.0", None),
        ("114.0.5735.199 1.81.169.145.78 81.169.145.78.1 x-81.169.145.78.jar 300.169.145.78", None),
        ("[2a00:1450:4001:82b::200e]:443", "[[ip-1]]:443"),
        ("2001:DB8::1 ::1 fe80::1:2 10:11:12 std::fe::be 2016:01:02", None),
        ("2A00:1450:4001:082b:0000:0000:0000:200e", "[ip-1]"),
        ("/home/ada/x /Users/Ada/y C:\\Users\\Ada L\\z", "/home/user-1/x /Users/user-1/y C:\\Users\\user-2\\z"),
        ("/home/runner/x /home/ x.org/home/page/ /Users/me/y C:\\Users\\Public\\z", None),
        ("https://github.com/ada and github.com/ada/repo", "https://github.com/user-1 and github.com/ada/repo"),
        ("https://github.com/features", None),
    ],
)
def test_addresses_and_places(text: str, expected: str | None) -> None:
    assert Placeholders().places(text) == (text if expected is None else expected)


def test_secrets_and_names_keep_their_numbers_through_one_issue() -> None:
    one, other = (f"hf_{letter}B3dE6gH9jK2mN5pQ8sT1vW4yZ7bD0fG3iJ" for letter in "ac")
    hide = Placeholders()
    assert (
        hide.secrets(f"{one} {other} {one}") == "[hugging-face-token-1] [hugging-face-token-2] [hugging-face-token-1]"
    )
    assert hide.secrets(other) == "[hugging-face-token-2]"
    assert hide.mentions("@ada") == "@user-1"
    assert hide.places("/home/ada/x") == "/home/user-1/x"
    assert hide.kinds == ["Hugging Face token", "user"]
    assert Placeholders().secrets(other) == "[hugging-face-token-1]"


def test_a_key_and_an_address_with_a_password_go_as_a_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234\nabcd==\n-----END RSA PRIVATE KEY-----"
    assert Placeholders().secrets(f"my key:\n{key}\nhelp") == "my key:\n[private-key-1]\nhelp"
    assert Placeholders().secrets("postgres://ada:s3cr3tW0rd@db/x") == "postgres://ada:[password-in-an-address-1]@db/x"
