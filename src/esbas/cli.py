"""The command line: `esbas COMMAND [options]`. Options are the fields of a command's configuration; tyro makes them."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from esbas import __version__
from esbas.errors import EsbasError, unknown

INTERRUPTED = 130


@dataclass(frozen=True)
class Command:
    """Where a command lives: a module with `main(config)` and the class of its configuration. Imported when it is called."""

    module: str
    config: str
    summary: str


COMMANDS = {
    "train": Command("esbas.training.commands.train", "Train", "Train a portfolio of learners on any Gymnasium task."),
    "resume": Command(
        "esbas.training.commands.resume", "Resume", "Continue a training that was stopped or killed, with the same numbers."
    ),
    "evaluate": Command("esbas.training.commands.evaluate", "Evaluate", "Play, and render, the best policy of a training."),
    "compare": Command(
        "esbas.training.commands.compare", "Compare", "Learning curves of several trainings in one table and figure."
    ),
    "demo": Command("esbas.experiments.demo", "Demo", "See SSBAS and ESBAS choose among Q-learners on a small task (a minute)."),
    "play": Command(
        "esbas.experiments.play", "Play", "Take part in the paper's negotiation dialogue, as its user or as its system."
    ),
}
EXPERIMENTS = {
    "bounds": Command(
        "esbas.experiments.bounds", "Bounds", "The paper's regret bounds (Table 1, Theorems 1-3), checked by experiment."
    ),
    "dialogue": Command(
        "esbas.experiments.dialogue", "Dialogue", "The paper's negotiation dialogue (Section 4): ESBAS over 32 portfolios."
    ),
    "gridworld": Command(
        "esbas.experiments.gridworld", "Gridworld", "The paper's fruit grid (Section 5.1): SSBAS over learning rates."
    ),
    "stationary": Command(
        "esbas.experiments.stationary", "Stationary", "The regret of every bandit on arms that do not change, as a yardstick."
    ),
}

HELP = """\
Usage: esbas COMMAND [options]

Which of my reinforcement-learning algorithms should control the next episode?
esbas answers online: a bandit picks one learner of a portfolio per episode, and every learner learns from every episode.

Commands
{commands}

Options
  -h, --help      This help; behind a command, the help of that command.
  --version       The version.

Examples
  esbas train CartPole-v1                Six DQNs, and who should act: live view, figures and report in ./esbas-CartPole-v1
  esbas train --example                  Writes a commented portfolio to start from
  esbas demo                             A first result without deep learners: table, figure and report in ./esbas-demo
  esbas demo --runs 40 --out my-demo     More runs, elsewhere
  esbas reproduce bounds --help          What an experiment does and its options

All write into a folder (--out). Ctrl-C keeps what is finished; the same command continues there.
"""

REPRODUCE_HELP = """\
Usage: esbas reproduce EXPERIMENT [options]

Runs an experiment on the paper (Laroche & Féraud, ICLR 2018) and writes tables, figures and a report into ./esbas-EXPERIMENT.

Experiments
{experiments}

Example
  esbas reproduce bounds --runs 100 --out quick-bounds
"""


def program() -> NoReturn:
    """The command `esbas`: ends with the exit code of `main`."""
    code = main()
    if code == INTERRUPTED:  # compiled runs may still be going in threads, which an orderly end of Python does not always survive
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 2 for a wrong use, 130 for Ctrl-C."""
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except EsbasError as error:
        print(f"esbas: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("esbas: stopped; the same command continues with what is finished", file=sys.stderr)
        return INTERRUPTED


def _main(words: list[str]) -> int:
    command, rest = (words[0], words[1:]) if words else ("--help", [])
    if command == "--version":
        print(f"esbas {__version__}")
        return 0
    if command in ("-h", "--help"):
        listed = {f"reproduce {name}": experiment for name, experiment in EXPERIMENTS.items()}
        print(HELP.format(commands=_list(COMMANDS | listed)), end="")
        return 0
    if command != "reproduce":
        return _call(f"esbas {command}", _find("command", command, COMMANDS, extra=("reproduce", "--help", "--version")), rest)
    if not rest or rest[0] in ("-h", "--help"):
        print(REPRODUCE_HELP.format(experiments=_list(EXPERIMENTS)), end="")
        return 0
    return _call(f"esbas reproduce {rest[0]}", _find("experiment", rest[0], EXPERIMENTS), rest[1:])


def _find(kind: str, name: str, table: Mapping[str, Command], *, extra: Sequence[str] = ()) -> Command:
    if name not in table:
        raise unknown(kind, name, [*table, *extra])
    return table[name]


def _call(program: str, command: Command, words: list[str]) -> int:
    import tyro  # here, so that `esbas --version` and `--help` answer at once

    module = import_module(command.module)
    config = tyro.cli(getattr(module, command.config), prog=program, args=words)
    module.main(config)
    return 0


def _list(commands: Mapping[str, Command]) -> str:
    width = max(map(len, commands)) + 2
    return "\n".join(f"  {name:<{width}}{command.summary}" for name, command in commands.items())
