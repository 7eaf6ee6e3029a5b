"""Where matrices come from: one module per source, one table of named sets."""
