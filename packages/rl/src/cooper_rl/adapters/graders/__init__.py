"""Graders that need a model in this process, the settings of a run, or a running reward service.

Entry points of the group `cooper.graders`, and the judge `judge.local`, bring them to
`cooper_verify/graders/written.py`.
"""
