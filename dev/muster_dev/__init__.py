"""Development tools of Muster: real clusters from nothing, for the tests and the demos. Not part of the distribution.

The core runs on the system's Python alone (3.11, standard library): it has to work before any environment exists.
"""
