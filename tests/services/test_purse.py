from __future__ import annotations

from pathlib import Path

import pytest

from stscurate.errors import InputError
from stscurate.resources import definition
from stscurate.services.chat import Reply
from stscurate.services.purse import Price, Prices, Purse

PRICE = Price(input=2.0, output=8.0)


def test_a_cost_is_counted_by_what_was_used() -> None:
    assert PRICE.of(1_000_000, 250_000) == 4.0
    purse = Purse(cost=1.0)
    bill = purse.reserve(90, 4, PRICE)
    assert bill
    purse.settle(bill, Reply("4", usage=101, prompt_tokens=100), sent=True)
    assert purse.spent == pytest.approx((100 * 2 + 1 * 8) / 1e6)


def test_what_is_in_flight_is_reserved_and_the_cap_never_passed() -> None:
    purse = Purse(cost=0.0021)
    bills = [purse.reserve(100, 0, PRICE) for _ in range(10)]
    assert all(bills)
    assert purse.reserve(100, 0, PRICE) is None
    assert bills[0]
    purse.settle(bills[0], None, sent=False)  # a 429 costs nothing
    again = purse.reserve(100, 0, PRICE)
    assert again
    purse.settle(again, Reply("4", usage=100), sent=True)
    assert purse.reserve(100, 0, PRICE) is None
    assert purse.spent == pytest.approx(0.0002)


def test_guesses_that_were_too_low_are_corrected_before_the_cap_is_passed() -> None:
    purse = Purse(cost=0.001)
    sent = 0
    while bill := purse.reserve(100, 0, PRICE):
        sent += 1
        purse.settle(bill, Reply("4", usage=200, prompt_tokens=200), sent=True)
    assert sent == 2
    assert purse.spent == pytest.approx(0.0008)


def test_a_timeout_may_have_been_paid_and_counts_as_its_guess() -> None:
    purse = Purse()
    bill = purse.reserve(100, 10, PRICE)
    assert bill
    purse.settle(bill, None, sent=True)
    assert purse.spent == pytest.approx(PRICE.of(100, 10))


def test_requests_are_capped_whatever_becomes_of_them() -> None:
    purse = Purse(requests=2)
    for _ in range(2):
        bill = purse.reserve(1, 1, None)
        assert bill
        purse.settle(bill, None, sent=False)
    assert purse.reserve(1, 1, None) is None


def test_prices_are_found_by_name_with_or_without_a_date(tmp_path: Path) -> None:
    table = tmp_path / "mine.toml"
    table.write_text('[models]\n"a-1" = { input = 1, output = 2, requests_per_minute = 60 }\n')
    prices = Prices.load(table)
    assert prices.get("a-1") == prices.get("a-1-2025-01-31") == Price(1.0, 2.0, 60.0)
    assert prices.get("a") is None
    assert Prices.load(definition("prices.toml")).get("gpt-4o-mini-2024-07-18") == Price(0.15, 0.6, batch=0.5)


@pytest.mark.parametrize(
    "text", ["", "models = 3", "[models]\na = 1", "[models.a]\ninput = 1", "[models.a]\ninput = -1\noutput = 1", "= ="]
)
def test_a_table_of_prices_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InputError, match="is no table of prices"):
        Prices.load(tmp_path / "p.toml")
    with pytest.raises(InputError, match="can't be read"):
        Prices.load(tmp_path / "gone.toml")
