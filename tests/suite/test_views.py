"""Views that the experiment offers in MLflow."""

import json

from suite.metrics import REFERENCES
from suite.views import NOTE, experiment_tags


def test_each_operation_has_a_view_of_its_fastest_and_every_tag_fits_a_store() -> None:
    tags = experiment_tags([f"spmm{n}" for n in range(30)])
    assert all(len(value) < 5000 for value in tags.values())
    assert len(tags) <= 40
    view = json.loads(tags["mlflow.sharedViewState.suite-fastest-spmm1"])
    state = json.loads(view["state"])
    assert "'spmm1'" in state["searchFilter"]
    assert state["orderByKey"] == f"metrics.`speedup_vs_{REFERENCES[1]}.hot`"
    assert set(state["selectedColumns"]) <= set(state["columnOrder"])
    assert NOTE in tags
