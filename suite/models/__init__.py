"""Language models that read a matrix and write programs."""
