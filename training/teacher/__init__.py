"""Programs to learn from: a space of strategies, their parameters and ways of writing them."""
