"""Submissions to HEPData: tables of stored results in YAML, with the workspace beside them.

PyYAML is imported when a submission is written; the extra `hepdata` installs it.
"""

from .submissions import Submission, submission

__all__ = ["Submission", "submission"]
