"""The main job: from a model and documents to a recommended pattern.

Import from the modules: this package itself imports nothing, so that `ixsearch --help` stays fast.
"""
