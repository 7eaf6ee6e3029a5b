"""What a store has, the oldest first."""

from mlflow.entities import Run
from mlflow.tracking import MlflowClient


def runs(store: tuple[MlflowClient, str], where: str = "") -> list[Run]:
    """The runs of an experiment."""
    client, experiment = store
    return client.search_runs([experiment], where, order_by=["attributes.start_time ASC"])
