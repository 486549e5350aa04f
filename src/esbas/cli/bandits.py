"""`esbas bandits`: lists the bandits, or describes one."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from esbas.bandits import BANDITS, Bandit
from esbas.errors import InvalidValueError
from esbas.training.options import parameters_of
from esbas.training.selectors import OF_BANDITS


@dataclass(frozen=True)
class Bandits:
    """List the bandits, or describe one: its formula, its guarantee and its options."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = ""
    """The bandit to describe. Default: list all."""


def main(config: Bandits) -> None:
    """Run `esbas bandits`."""
    if config.name:
        _describe(config.name, _find(config.name))
        return
    found = {name: _find(name) for name in BANDITS}
    width = max(map(len, found)) + 2
    for setting in dict.fromkeys(each.setting for each in found.values()):
        print(f"For {setting}:")
        for name, bandit in sorted(found.items()):
            if bandit.setting == setting:
                print(f"  {name:<{width}}{bandit.use}")
        print()
    print("`esbas bandits NAME` describes one; `esbas train TASK --selector NAME` uses it.")


def _find(name: str) -> type[Bandit]:
    """The class of the bandit with this name."""
    found: Any = BANDITS.find(name)
    if not (isinstance(found, type) and issubclass(found, Bandit)):
        raise InvalidValueError(f"{name!r} must be a subclass of esbas.bandits.Bandit, but is {found!r}: name another")
    return found


def _describe(name: str, bandit: type[Bandit]) -> None:
    options = [str(each.replace(annotation=each.empty)) for each in _options(bandit)]
    print(f"{bandit.__name__}, for {bandit.setting}\n\n{inspect.getdoc(bandit)}\n")
    print(f"When to use it: {bandit.use}.\nGuarantee: {bandit.guarantee}.\nOptions: {', '.join(options) or 'none'}.")
    example = f"{name}({options[0]})" if options else name
    print(f'\nesbas train TASK --selector "{example}"')


def _options(bandit: type[Bandit]) -> list[inspect.Parameter]:
    return [each for key, each in parameters_of(bandit).items() if key not in OF_BANDITS]
