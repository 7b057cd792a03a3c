"""The exception tree. Every message is one or two sentences: what is wrong, where, and the mend.

StscurateError          exit code 1: something failed that isn't the user's doing
├── ServiceError        an endpoint or a model could not be reached, or answered nonsense
├── RunBusyError        another process holds the run folder
└── InputError          exit code 2: a mistake of the user
    ├── SchemaError     a table breaks its contract
    └── SettingsChangedError    a finished result was made with other settings or inputs
"""


class StscurateError(Exception):
    """Base of all errors that a user may see; its text is shown without a traceback."""

    exit_code = 1


def first_line(error: BaseException) -> str:
    """What a library's error says, short enough to stand in a sentence of ours."""
    return str(error).strip().split("\n")[0][:200].rstrip(".")


class ServiceError(StscurateError):
    """A service (endpoint, hub, local model) failed after the retries it was due."""


class RunBusyError(StscurateError):
    """Another process is working in the same folder."""


class InputError(StscurateError):
    """A mistake in what the user gave: a file, a column, an option."""

    exit_code = 2


class SchemaError(InputError):
    """A table that breaks its contract; the message names the column, the row and the mend."""


class SettingsChangedError(InputError):
    """A finished stage stands in the way: it was made from other inputs or with other settings."""
