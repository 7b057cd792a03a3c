"""Which secrets our patterns find, and which detect-secrets does: one written example of each kind, and texts without.

    python benchmarks/secret_kinds.py

The tokens are made at run time from a seed, so that no scanner takes this file for a leak. detect-secrets runs with all
its plugins but the entropy ones and the keyword one, which in prose find mostly words; with those it is shown too.
"""

import base64
import random
import string
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings, transient_settings

from stscurate.methods.secrets import find_secrets

_NOISY = {"Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector"}
_CLEAN = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixes it", "id 550e8400-e29b-41d4-a716-446655440000 isn't found",
    "class sk-circle-fade-dot-animation is gone", "see https://example.org/a/b?c=d&e=f#g", "key: value",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "the password is wrong, says the dialog", "xoxo to all",
    "token = get_token(user)", "export API_KEY=<your key>", "-----BEGIN CERTIFICATE-----", "SG.1 and AC.2",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is a placeholder", "AKIA is the prefix of AWS's keys",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "https://user@example.org/x",
]  # fmt: skip


def written(seed: int = 0) -> Iterator[tuple[str, str]]:
    """(kind, text with one secret of it)."""
    draw = random.Random(seed)

    def some(letters: str, length: int) -> str:
        return "".join(draw.choice(letters) for _ in range(length))

    mixed, hexadecimal = string.ascii_letters + string.digits, "0123456789abcdef"
    upper = string.ascii_uppercase + string.digits
    part = base64.urlsafe_b64encode(b'{"alg":"HS256"}').decode().rstrip("=")
    yield "GitHub token", f"use gh{'p'}_{some(mixed, 36)} here"
    yield "GitHub fine-grained", f"github{'_pat'}_{some(mixed, 22)}_{some(mixed, 59)}"
    yield "GitLab", f"gl{'pat'}-{some(mixed, 20)}"
    yield "Hugging Face", f"token h{'f'}_{some(mixed, 34)}"
    yield "OpenAI", f"sk{'-proj'}-{some(mixed, 48)}"
    yield "Anthropic", f"sk{'-ant'}-api03-{some(mixed, 93)}AA"
    yield "npm", f"np{'m'}_{some(mixed, 36)}"
    yield "PyPI", f"pypi{'-Ag'}EIcHlwaS5vcmc{some(mixed, 70)}"
    yield "AWS access key", f"AK{'IA'}{some(upper, 16)}"
    yield "AWS secret key", f"aws_secret_access{'_key'} = {some(mixed, 40)}"
    yield "Google API key", f"AI{'za'}{some(mixed, 35)}"
    yield "Google OAuth secret", f"GOC{'SPX'}-{some(mixed, 28)}"
    yield "Slack token", f"xox{'b'}-{some(string.digits, 12)}-{some(string.digits, 12)}-{some(mixed, 24)}"
    yield "Slack webhook", f"https://hooks.slack{'.com'}/services/T{some(upper, 8)}/B{some(upper, 8)}/{some(mixed, 24)}"
    yield "Stripe", f"sk_{'live'}_{some(mixed, 24)}"
    yield "SendGrid", f"S{'G'}.{some(mixed, 22)}.{some(mixed, 43)}"
    yield "Twilio", f"the key S{'K'}{some(hexadecimal, 32)} of it"
    number = base64.b64encode(f"1{some(string.digits, 17)}".encode()).decode()
    yield "Discord bot", f"{number}.{some(mixed, 6)}.{some(mixed, 27)}"
    yield "Telegram bot", f"{some('123456789', 9)}:AA{some(mixed, 33)}"
    yield "Mailchimp", f"{some(hexadecimal, 32)}-us{'12'}"
    yield "Square", f"sq{'0csp'}-{some(mixed, 43)}"
    yield "Azure storage", f"AccountKey{'='}{some(mixed, 86)}=="
    yield "DigitalOcean", f"dop{'_v1'}_{some(hexadecimal, 64)}"
    yield "Databricks", f"da{'pi'}{some(hexadecimal, 32)}"
    yield "Shopify", f"shp{'at'}_{some(hexadecimal, 32)}"
    yield "JSON web token", f"ey{part[2:]}.eyJ{some(mixed, 40)}.{some(mixed, 43)}"
    yield "private key", f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{some(mixed, 64)}\n-----END RSA PRIVATE KEY-----"
    yield "password in an address", f"postgres://app:{some(mixed, 12)}@db.example.org/x"


def peers(texts: Sequence[str], *, noisy: bool) -> list[bool]:
    """Whether detect-secrets finds something in each text."""
    with default_settings() as settings:
        plugins = [{"name": name} for name in settings.plugins if noisy or name not in _NOISY]
    found = []
    with transient_settings({"plugins_used": plugins}), tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            path = Path(folder) / f"{number}.txt"
            path.write_text(text)
            secrets = SecretsCollection()
            secrets.scan_file(str(path))
            found.append(bool(list(secrets)))
    return found


def main() -> None:
    """Print a row a kind, then what is found in the texts without secrets."""
    kinds, texts = zip(*written(), strict=True)
    columns = {
        "ours": [bool(find_secrets(text)) for text in texts],
        "detect-secrets": peers(texts, noisy=False),
        "with entropy and keywords": peers(texts, noisy=True),
    }
    for kind, *row in zip(kinds, *columns.values(), strict=True):
        print(f"{kind:24}", *("yes" if value else "-" for value in row), sep="\t")
    print("found", *(f"{sum(column)} of {len(texts)}" for column in columns.values()), sep="\t")
    false = [sum(bool(find_secrets(text)) for text in _CLEAN)]
    false += [sum(peers(_CLEAN, noisy=noisy)) for noisy in (False, True)]
    print("in clean texts", *(f"{count} of {len(_CLEAN)}" for count in false), sep="\t")


if __name__ == "__main__":
    main()
