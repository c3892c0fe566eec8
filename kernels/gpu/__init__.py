"""Triton kernels: each file holds one operation's kernels and the function that launches them.

Each function has the name, the signature and the meaning of its torch twin.
"""
