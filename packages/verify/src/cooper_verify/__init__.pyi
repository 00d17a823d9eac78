"""Every public name and the module it is in; see `cooper_base.public_names`."""

__version__: str

from cooper_base.data.answer import Answer as Answer
from cooper_base.data.problem import Problem as Problem
from cooper_base.errors import InputError as InputError
from cooper_base.errors import MissingExtraError as MissingExtraError
from cooper_verify.grader import Asked as Asked
from cooper_verify.grader import Grader as Grader
from cooper_verify.grader import Opinion as Opinion
from cooper_verify.graders.written import open_grader as open_grader
from cooper_verify.problems.loading import read_problems as read_problems
from cooper_verify.rules.kinds.maths import RuleVerifier as RuleVerifier
from cooper_verify.rules.rule import Rule as Rule
from cooper_verify.rules.rule import RuleConfig as RuleConfig
