"""Error messages of the checks: the plug-in, the rule, and what happened instead."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from esbas.errors import ContractError

Case = TypeVar("Case")


def expect(holds: bool, otherwise: str) -> None:
    """Raise a ContractError with what happened instead, unless the condition holds."""
    if not holds:
        raise ContractError(otherwise)


def expect_refused(
    call: Callable[..., Any], *arguments: Any, by: type[Exception] = ValueError, **keywords: Any
) -> None:
    """Raise a ContractError unless the call raises the given kind of error."""
    try:
        call(*arguments, **keywords)
    except by:
        return
    given = [repr(argument) for argument in arguments]
    given += [f"{name}={value!r}" for name, value in keywords.items()]
    name = getattr(call, "__name__", call)
    raise ContractError(f"{name}({', '.join(given)}) was accepted")


def check_rules(subject: str, rules: Sequence[Callable[[Case], None]], case: Case) -> None:
    """Check one rule after the other.

    Args:
        subject: the plug-in, for messages.
        rules: functions that raise an error if `case` breaks a rule. The first line of the
            docstring is the rule.
        case: what is checked.
    """
    for rule in rules:
        text = (rule.__doc__ or rule.__name__).splitlines()[0].rstrip(".")
        try:
            rule(case)
        except ContractError as error:
            raise _broken(subject, text, str(error)) from error
        except Exception as error:
            # Whatever a plug-in does wrong, its author gets one sentence, with the cause.
            raise _broken(subject, text, f"raised {type(error).__name__}: {error}") from error


def _broken(subject: str, rule: str, instead: str) -> ContractError:
    return ContractError(f"{subject} must keep the rule {rule!r}, but {instead.rstrip('.')}.")
