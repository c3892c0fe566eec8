"""What a pattern is: the value type, its files, its checks, its exports. No torch."""

from __future__ import annotations

from ixsearch.patterns.atomic import write_bytes_atomic, write_text_atomic
from ixsearch.patterns.checks import (
    DSA_ARCHITECTURES,
    check_architecture,
    check_for_model,
    check_letters,
    check_same_model,
)
from ixsearch.patterns.dialects import Resolved, parse_engine, resolve
from ixsearch.patterns.errors import IxsearchError, ModelError, PatternError, UsageError
from ixsearch.patterns.export import Export, write_overrides
from ixsearch.patterns.findings import Finding, Place
from ixsearch.patterns.lint import Options, Report, lint
from ixsearch.patterns.model_config import (
    ModelConfig,
    config_hash,
    default_pattern,
    read_model_config,
)
from ixsearch.patterns.pattern import Pattern
from ixsearch.patterns.pattern_file import (
    DocumentsUsed,
    ModelIdentity,
    PatternFile,
    Provenance,
    dump_pattern_file,
    parse_pattern_file,
    read_pattern_file,
)
from ixsearch.patterns.presets import PRESETS, preset
from ixsearch.patterns.reading import Reading, read_anything
from ixsearch.patterns.rules import RULES
from ixsearch.patterns.stages import Stages

__all__ = [
    "DSA_ARCHITECTURES",
    "PRESETS",
    "RULES",
    "DocumentsUsed",
    "Export",
    "Finding",
    "IxsearchError",
    "ModelConfig",
    "ModelError",
    "ModelIdentity",
    "Options",
    "Pattern",
    "PatternError",
    "PatternFile",
    "Place",
    "Provenance",
    "Reading",
    "Report",
    "Resolved",
    "Stages",
    "UsageError",
    "check_architecture",
    "check_for_model",
    "check_letters",
    "check_same_model",
    "config_hash",
    "default_pattern",
    "dump_pattern_file",
    "lint",
    "parse_engine",
    "parse_pattern_file",
    "preset",
    "read_anything",
    "read_model_config",
    "read_pattern_file",
    "resolve",
    "write_bytes_atomic",
    "write_overrides",
    "write_text_atomic",
]
