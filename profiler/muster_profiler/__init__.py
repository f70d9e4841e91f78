"""Muster's profiler: runs an unmodified training script for a few steady iterations at each candidate mini-batch, and
reports what sizing needs (format `muster.dev/profile/v1`).

It is copied into the user's image, so it uses nothing but the standard library and the framework it finds there, and it
runs on Python 3.9 and later. Importing this package imports no framework and changes nothing.
"""
