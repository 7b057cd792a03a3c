"""A Hub on loopback, for the real clients: `huggingface_hub` and `datasets` talk to it as to huggingface.co.

It knows repositories (models and data sets) with commits, branches, tags and pull requests; small files and LFS; who
may read and write; and it fails as it is told. The clients read HF_ENDPOINT when they are imported: a test starts a
process with `LocalHub.environment`, or gives the address to `HfApi`.
"""

from tests.local_hub.faults import drop, lose, meanwhile, status
from tests.local_hub.repositories import Repository
from tests.local_hub.server import READER, STRANGER, WRITER, Asked, LocalHub

__all__ = [
    "READER",
    "STRANGER",
    "WRITER",
    "Asked",
    "LocalHub",
    "Repository",
    "drop",
    "lose",
    "meanwhile",
    "status",
]
