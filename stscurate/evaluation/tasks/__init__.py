"""What else vectors are good for: texts found by the others of their group, and classes told by a linear probe."""

from stscurate.evaluation.tasks.data import Grouped, Labelled, read_groups, read_labels
from stscurate.evaluation.tasks.measuring import Told, compare_tasks, measure_task
from stscurate.evaluation.tasks.probe import Probe
from stscurate.evaluation.tasks.retrieval import Retrieval

Task = Retrieval | Probe

__all__ = [
    "Grouped",
    "Labelled",
    "Probe",
    "Retrieval",
    "Task",
    "Told",
    "compare_tasks",
    "measure_task",
    "read_groups",
    "read_labels",
]
