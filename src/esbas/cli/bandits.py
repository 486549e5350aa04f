"""`esbas bandits`: lists the bandits, or describes one."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from esbas.bandits import BANDITS, Bandit
from esbas.errors import InvalidValueError
from esbas.specs.options import parameters_of
from esbas.specs.selectors import OF_BANDITS


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
    width = max(len(name) for name in found) + 2
    settings = dict.fromkeys(bandit.setting for bandit in found.values())  # each once, in order
    for setting in settings:
        print(f"For {setting}:")
        for name, bandit in sorted(found.items()):
            if bandit.setting == setting:
                print(f"  {name:<{width}}{bandit.use}")
        print()
    print("`esbas bandits NAME` describes one; `esbas train ENV --selector NAME` uses it.")


def _find(name: str) -> type[Bandit]:
    """Return the class of the bandit with this name."""
    found: Any = BANDITS.find(name)
    if not (isinstance(found, type) and issubclass(found, Bandit)):
        rule = f"{name!r} must be a subclass of esbas.bandits.Bandit"
        raise InvalidValueError(f"{rule}, but is {found!r}: name another.")
    return found


def _describe(name: str, bandit: type[Bandit]) -> None:
    options = _options(bandit)
    example = f"{name}({options[0]})" if options else name
    print(f"{bandit.__name__}, for {bandit.setting}")
    print()
    print(inspect.getdoc(bandit))
    print()
    print(f"When to use it: {bandit.use}.")
    print(f"Guarantee: {bandit.guarantee}.")
    print(f"Options: {', '.join(options) or 'none'}.")
    print()
    print(f'esbas train ENV --selector "{example}"')


def _options(bandit: type[Bandit]) -> list[str]:
    """Return the options with their defaults, such as "xi=0.25"."""
    found: list[str] = []
    for name, parameter in parameters_of(bandit).items():
        if name not in OF_BANDITS:
            found.append(str(parameter.replace(annotation=parameter.empty)))
    return found
