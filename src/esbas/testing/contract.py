"""Error messages of the checks: one sentence with the plug-in, the rule, and what happened instead."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from esbas.errors import ContractError

Case = TypeVar("Case")


def expect(holds: bool, otherwise: str) -> None:
    """Raise a ContractError that says what happened instead, unless it holds."""
    if not holds:
        raise ContractError(otherwise)


def expect_refused(call: Callable[..., Any], *arguments: Any, by: type[Exception] = ValueError, **keywords: Any) -> None:
    """Raise a ContractError unless the call raises the given kind of error."""
    try:
        call(*arguments, **keywords)
    except by:
        return
    call_text = ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())])
    raise ContractError(f"{getattr(call, '__name__', call)}({call_text}) was accepted")


def check_rules(subject: str, rules: Sequence[Callable[[Case], None]], case: Case) -> None:
    """Check one rule after the other: each is a function whose docstring is the rule."""
    for rule in rules:
        text = (rule.__doc__ or rule.__name__).rstrip(".")
        try:
            rule(case)
        except ContractError as error:
            raise ContractError(f"{subject} must keep the rule {text!r}, but {error}") from error
        except Exception as error:  # whatever a plug-in does wrong, its author gets one sentence, with the cause
            raise ContractError(f"{subject} must keep the rule {text!r}, but raised {type(error).__name__}: {error}") from error
