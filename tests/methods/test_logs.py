import pytest

from stscurate.methods.logs import cut_code, cut_logs, cut_words

TRACES = {
    "python": ["Traceback (most recent call last):"]
    + [line for n in range(9) for line in (f'  File "a{n}.py", line {n}, in f', f"    f{n}()", "    ~~^^")]
    + ["ValueError: x"],
    "java": ["java.lang.Error: x", *(f"\tat a.b.C{n}.run(C.java:{n})" for n in range(20)), "Caused by: y"],
    "javascript": ["TypeError: x", *(f"    at Object.f{n} (/app/a.js:{n}:5)" for n in range(20)), "done"],
    "rust": ["thread 'main' panicked at 'x'", *(f"  {n}: core::a{n}\n" for n in range(20)), "note: see above"],
    "dotnet": [
        "Unhandled exception. x",
        *(f"   at N.C.M{n}(String s) in /a.cs:line {n}" for n in range(20)),
        "Aborted",
    ],
    "go": ["panic: x"]
    + [line for n in range(9) for line in (f"main.f{n}(0xc0000{n})", f"\t/app/main.go:{n} +0x1d")]
    + ["exit status 2"],
    "ruby": ["x (RuntimeError)", *(f"app/a.rb:{n}:in `f{n}'" for n in range(20)), "done"],
    "php": ["PHP Fatal error: x", *(f"#{n} /app/a.php({n}): f()" for n in range(20)), "thrown in a.php"],
    "log": ["It says:", *(f"2024-01-02 10:00:{n:02} [worker] n{n}" for n in range(20)), "and then nothing."],
    "levels": ["It says:", *(f"INFO: step {n}" for n in range(20)), "and then nothing."],
    "base64": ["It says:", *("QUJD" * 16 for n in range(20)), "and then nothing."],
}


@pytest.mark.parametrize("kind", TRACES)
def test_a_run_keeps_its_first_and_last_five_lines_and_what_stands_around_it(kind: str) -> None:
    lines = TRACES[kind]
    run = lines[1:-1]
    expected = [lines[0], *run[:5], f"[{len(run) - 10} lines cut]", *run[-5:], lines[-1]]
    assert cut_logs(lines) == (expected, len(run) - 10)
    prose = ["Some words."] * 7
    assert cut_logs(prose + lines + prose) == (prose + expected + prose, len(run) - 10)


def test_a_run_of_eleven_stays_and_one_of_twelve_is_cut() -> None:
    lines = [f"10:00:{n:02} n" for n in range(12)]
    assert cut_logs(lines[:11]) == (lines[:11], 0)
    assert cut_logs(lines) == ([*lines[:5], "[2 lines cut]", *lines[7:]], 2)


def test_empty_lines_between_the_lines_of_a_log_do_not_break_it() -> None:
    lines = [line for n in range(20) for line in (f"10:00:{n:02} n", "")]
    assert cut_logs(lines) == ([*lines[:5], "[29 lines cut]", *lines[34:]], 29)


def test_prose_and_lists_are_no_logs() -> None:
    lines = [f"#{n} crashes at startup" for n in range(20)] + [f"- {n}. step" for n in range(20)] + ["at last"] * 3
    assert cut_logs(lines) == (lines, 0)


def test_code_keeps_twenty_lines_and_ten() -> None:
    lines = [f"x = {n}" for n in range(42)]
    assert cut_code(lines) == ([*lines[:20], "[12 lines cut]", *lines[32:]], 12)
    assert cut_code(lines[:31]) == (lines[:31], 0)


def test_lines_cut_twice_are_counted_once() -> None:
    code = [f"x = {n}" for n in range(40)]
    log = [f"10:00:{n:02} n" for n in range(20)]
    kept, cut = cut_code(code[:18] + log + code[18:])
    assert kept == [*code[:18], *log[:2], "[30 lines cut]", *code[30:]]
    assert cut == len(code) + len(log) - 30


def test_long_words_are_cut_and_long_lines_are_not() -> None:
    line = "word " * 100
    assert cut_words(line) == line
    assert cut_words(f"a {'x' * 200} {'y' * 1300} b") == f"a {'x' * 200} {'y' * 100}[1,200 characters cut] b"
