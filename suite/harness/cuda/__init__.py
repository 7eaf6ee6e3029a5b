"""The CUDA device: memory, programs, checks, clock, and the vendor's library."""
