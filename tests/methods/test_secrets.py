import time

import pytest

from stscurate.methods.secrets import Secret, find_secrets

BODY = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bD0fG3iJ6kL9nO2qR5"  # made up


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
        ("private key", "-----BEGIN PRIVATE KEY-----"),
        ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("private key", "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    ],
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("log: token=", "\n"), ("令牌 `", "` 泄露")])
def test_secret_is_found_where_it_stands(kind: str, secret: str, before: str, after: str) -> None:
    assert find_secrets(before + secret + after) == [Secret(kind, len(before), len(before + secret))]


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
        "",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert find_secrets(text) == []


def test_several_are_given_in_the_order_of_the_text() -> None:
    text = f"hf_{BODY[:34]} and ghp_{BODY[:36]}"
    assert [secret.kind for secret in find_secrets(text)] == ["Hugging Face token", "GitHub token"]


@pytest.mark.parametrize("part", ["ghp_", "sk-", "github_pat_", "A", "AKIA", "-----BEGIN ", "sk-a", "hf_PRIVATE KEY"])
def test_time_is_linear_in_the_text(part: str) -> None:
    def seconds(length: int) -> float:
        text = (part * length)[:length]
        began = time.perf_counter()
        find_secrets(text)
        return time.perf_counter() - began

    # eight times the text, at most some sixteen times the time: a quadratic search would take sixty-four
    assert min(seconds(400_000) for _ in range(3)) < 16 * min(seconds(50_000) for _ in range(3)) + 0.01
