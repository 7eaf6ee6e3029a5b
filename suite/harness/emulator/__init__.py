"""A device for hosts without a GPU: CUDA device code as C++, its threads as fibers.

It answers whether a program is right, never how fast it is on a GPU. ``device`` is the way in;
``build`` turns program texts into shared objects, ``library`` loads them, ``native`` is the
scheduler and ``cuda`` the environment that a program finds.
"""
