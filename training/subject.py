"""Which model a command looks at: the options that ``rates`` and ``probe`` have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from suite.models.variants import TINY

if TYPE_CHECKING:
    from suite.models.policy import Policy


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A base with or without an adapter, and where it runs."""

    out: Annotated[Path, "folder of what is found"]
    base: Annotated[str, "tiny, or a folder or hub id of a causal model"] = TINY
    adapter: Annotated[Path | None, "folder of an adapter; the base alone if left out"] = None
    weights: Annotated[
        Literal["trained", "random"], "random: an untrained model of the base's shape"
    ] = "trained"
    encoding: Annotated[
        Literal["coordinates", "text"], "without an adapter: how nonzeros are told"
    ] = "coordinates"
    seed: Annotated[int, "of what is drawn, and of random weights"] = 0
    device: Annotated[Literal["auto", "cpu", "cuda"], "where the model runs"] = "auto"
    tracking: Annotated[Literal["on", "off"], "MLflow"] = "on"

    def mistakes(self) -> list[str]:
        """What cannot be meant, a line each."""
        checks = {
            f"seed {self.seed}: 0 or more": self.seed >= 0,
            "weights random: an adapter makes no sense with them": self.weights == "trained"
            or self.adapter is None,
        }
        return [text for text, right in checks.items() if not right]

    def load(self) -> Policy:
        """The model, ready to generate.

        Raises:
            TrainingError: It cannot be loaded.
        """
        from training.policies import device_of, load

        device = device_of(self.device)
        return load(self.base, self.adapter, device, self.encoding, self.weights, self.seed)

    def tags(self, stage: str) -> dict[str, str]:
        """What MLflow's run of it is found by."""
        return {"stage": stage, "adapter": str(self.adapter), "base": self.base}
