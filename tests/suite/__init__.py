"""Tests of the measuring suite around the harness."""
