import base64

import pytest

from stscurate.methods.secrets import Secret, find_secrets

BODY = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bD0fG3iJ6kL9nO2qR5"  # made up
HEX = "3f7a9c1e5b2d8064" * 4


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("GitHub token", "ghp_" + BODY[:36]),
        ("GitHub token", "gho_" + BODY[:36]),
        ("GitHub fine-grained token", "github_pat_" + BODY[:22] + "_" + BODY[:40]),
        ("Hugging Face token", "hf_" + BODY[:34]),
        ("API key (sk-)", "sk-" + BODY),
        ("API key (sk-)", "sk-proj-" + BODY[:20] + "_" + BODY[20:]),
        ("AWS access key", "AKIA" + "Q3XZ7W2R5T8Y1U4P"),
        ("GitLab token", "glpat-" + BODY[:20]),
        ("npm token", "npm_" + BODY[:36]),
        ("PyPI token", "pypi-Ag" + BODY + BODY),
        ("Stripe key", "sk_live_" + BODY[:24]),
        ("Google API key", "AIza" + BODY[:35]),
        ("Slack token", "xoxb-123456789012-" + BODY[:24]),
        ("JSON web token", f"eyJ{BODY[:20]}.eyJ{BODY[:30]}.{BODY[:43]}"),
        ("Google OAuth secret", "GOCSPX-" + BODY[:28]),
        ("SendGrid key", f"SG.{BODY[:22]}.{BODY[:43]}"),
        ("Twilio key", "SK" + HEX[:32]),
        ("Telegram token", "123456789:AA" + BODY[:33]),
        ("Mailchimp key", HEX[:32] + "-us12"),
        ("Square token", "sq0csp-" + BODY[:43]),
        ("DigitalOcean token", "dop_v1_" + HEX),
        ("Databricks token", "dapi" + HEX[:32]),
        ("Shopify token", "shpat_" + HEX[:32]),
        ("private key", "-----BEGIN PRIVATE KEY-----"),
        ("private key", "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA/+aB3d\nE6g=\n-----END EC PRIVATE KEY-----"),
        ("private key", "-----BEGIN PRIVATE KEY-----\nMHcCAQEEIA12aB3d\n  E6gH9jK2mN5pQ8sT"),
        ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("private key", "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    ],
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("log: token=", "\n"), ("令牌 `", "` 泄露")])
def test_secret_is_found_where_it_stands(kind: str, secret: str, before: str, after: str) -> None:
    assert find_secrets(before + secret + after) == [Secret(kind, len(before), len(before + secret))]


@pytest.mark.parametrize(
    ("kind", "text", "secret"),
    [
        ("Slack webhook", "https://hooks.slack.com/services/{}", "T0AB1CD2E/B0FG3HI4J/" + BODY[:24]),
        ("Azure storage key", "AccountName=x;AccountKey={};", (BODY * 2)[:86] + "=="),
    ],
)
def test_only_the_secret_part_of_an_address_or_setting_is_named(kind: str, text: str, secret: str) -> None:
    start = text.index("{}")
    assert find_secrets(text.format(secret)) == [Secret(kind, start, start + len(secret))]


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" + "x" * 36,
        "ghp_short",
        "sk-circle-fade-dot-animation-delay-long",
        "task-" + BODY,
        "AKIAIOSFODNN7EXAMPLE",
        "BAKIAQ3XZ7W2R5T8Y1U4P",
        "hf_hub_download(repo_id, filename)",
        "-----BEGIN PUBLIC KEY-----",
        "the PRIVATE KEY is not shown",
        "SG.1, AC.2 and SK" + "0" * 32,
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        f"commit {HEX[:40]} and {HEX[:32]}-usb",
        "12:34:56:AA:BB:CC:DD:EE is a MAC address",
        "AccountKey=<your key>",
        "xoxb-workspace-token-of-your-own",
        "eyJhbGciOiJIUzI1NiJ9.payload.signature",
        "https://user:password@host and https://user:$PASSWORD@host and https://host:8080/x@y",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize(
    ("kind", "text", "secret"),
    [
        ("AWS secret key", f"aws_secret_access_key = {BODY[:38]}/+", f"{BODY[:38]}/+"),
        ("AWS secret key", f'"SecretAccessKey": "{BODY[:40]}"', BODY[:40]),
        ("password in an address", f"git clone https://ada:{BODY[:12]}@example.org/x", BODY[:12]),
    ],
)
def test_of_what_is_told_by_its_surroundings_only_the_secret_is_named(kind: str, text: str, secret: str) -> None:
    at = text.index(secret)
    assert find_secrets(text) == [Secret(kind, at, at + len(secret))]


def discord(number: str) -> str:
    """A made-up token of the bot of that number."""
    return ".".join([base64.b64encode(number.encode()).decode().rstrip("="), BODY[:6], BODY[4:31]])


@pytest.mark.parametrize("number", ["81384788765712384", "123456789012345678", "9876543210123456789", "5" + "01" * 9])
def test_a_discord_bot_token_begins_with_its_bots_number(number: str) -> None:
    text = f"client.login('{discord(number)}');"
    assert find_secrets(text) == [Secret("Discord bot token", 14, len(text) - 3)]


@pytest.mark.parametrize(
    "text",
    [
        discord("12345678901234567x"),  # no number
        discord("1234567890123456"),  # shorter than any bot's
        discord("123456789012345678")[:-1],  # its last part too short
        discord("123456789012345678").replace(".", "-"),
        "MTIz.abc.def and java.util.Map.NTryAgainLaterOrNeverAtAll.method.ofAVeryLongNameIndeedItIsSo",
    ],
)
def test_three_parts_between_dots_are_no_discord_token_without_a_number(text: str) -> None:
    assert find_secrets(text) == []


def test_each_of_several_keys_ends_where_it_ends() -> None:
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    text = f"{begin}\nabc\n{end} and {begin} then {begin}\n{end}"
    assert [text[secret.start : secret.stop] for secret in find_secrets(text)] == [
        f"{begin}\nabc\n{end}",
        begin,
        f"{begin}\n{end}",
    ]


def test_several_are_given_in_the_order_of_the_text() -> None:
    text = f"hf_{BODY[:34]} and ghp_{BODY[:36]}"
    assert [secret.kind for secret in find_secrets(text)] == ["Hugging Face token", "GitHub token"]
