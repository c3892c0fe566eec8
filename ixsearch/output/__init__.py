"""What a run leaves behind: the folder, the tables, the JSON, the progress.

Import from the modules: this package itself imports nothing, so that `ixsearch --help` stays fast.
"""
