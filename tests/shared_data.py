"""Where public data lies that some tests measure on; it is no part of the project, and they skip without it."""

import os
from pathlib import Path

DATA = Path(os.environ.get("STSCURATE_DATA") or Path(__file__).parents[2] / "shared" / "data")
