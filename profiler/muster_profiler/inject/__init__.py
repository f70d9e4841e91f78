"""Getting into the script's processes: a site directory on PYTHONPATH, and a hook on the framework's import."""
