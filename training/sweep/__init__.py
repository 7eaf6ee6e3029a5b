"""Optuna searches the weights of the reward: what a trial may be, what it is worth, who runs it."""
