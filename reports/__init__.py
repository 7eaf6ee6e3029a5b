"""Shows a person what was measured."""
