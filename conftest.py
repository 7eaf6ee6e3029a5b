"""Makes the suite's options and fixtures known wherever pytest starts in this repository."""

pytest_plugins = ["suite.plugin", "suite.models.plugin"]
