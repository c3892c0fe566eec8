"""How sure one can be of a pattern: paired statistics, and the verdict made of them.

Import from the modules: this package itself imports nothing, so that `ixsearch --help` stays fast.
"""
