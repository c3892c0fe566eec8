"""Finding patterns: what may be proposed, who proposes it, and the study that remembers the scores.

Import from the modules: this package itself imports nothing, so that `ixsearch --help` stays fast.
"""
