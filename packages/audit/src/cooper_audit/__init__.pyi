"""Every public name and the module it is in; see `cooper_base.public_names`."""

__version__: str

from cooper_audit.report.load_run import Run as Run
from cooper_audit.report.load_run import load_run as load_run
from cooper_audit.report.report import write_report as write_report
from cooper_audit.rollouts.auditing import Options as Options
from cooper_audit.rollouts.auditing import audit as audit
from cooper_audit.run.hacking_alarm import HackingAlarm as HackingAlarm
from cooper_audit.run.run_record import read_metrics as read_metrics
from cooper_base.errors import InputError as InputError
