"""Audits of runs of other trainers: are they being hacked? docs/audit.md; `cooper audit` is the command."""

from cooper_audit.rollouts.auditing import Audit, Options, audit
from cooper_audit.rollouts.labels import read_labels

__all__ = ["Audit", "Options", "audit", "read_labels"]
