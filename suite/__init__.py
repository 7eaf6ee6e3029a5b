"""Measure a CUDA program on a sparse problem, whoever wrote the program."""
