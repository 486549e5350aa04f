"""The command line: `esbas COMMAND [options]`. tyro derives the options from the fields of the command's configuration class."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from esbas import __version__, experiments
from esbas.errors import EsbasError, unknown
from esbas.files import file_error
from esbas.registry import import_object

INTERRUPTED = 130


@dataclass(frozen=True)
class Command:
    """A command: `module:Class` of its configuration, imported when the command is called, and a summary for the help.

    The class has a method `run`, or `module` (by default that of the class) has a function `main` that takes the configuration.
    It is imported after the options have been read.
    """

    config: str
    summary: str
    module: str = ""

    def load(self) -> tuple[Any, Callable[[Any], None]]:
        """The configuration class, and the function that executes a configuration."""
        return import_object(self.config), self._execute

    def _execute(self, config: Any) -> None:
        run = getattr(config, "run", None)
        if run is not None:
            run()
        else:
            import_module(self.module or self.config.partition(":")[0]).main(config)


COMMANDS = {
    "train": Command(
        "esbas.training.config:Train", "Train a portfolio of learners on any Gymnasium task.", "esbas.training.commands.train"
    ),
    "resume": Command(
        "esbas.training.commands.resume:Resume", "Continue a stopped or killed training with the same results, or extend it."
    ),
    "evaluate": Command("esbas.training.commands.evaluate:Evaluate", "Play, and render, the best policy of a training."),
    "export": Command("esbas.training.commands.export:Export", "Write the best policy of a training for use without esbas."),
    "compare": Command(
        "esbas.training.commands.compare:Compare", "Learning curves of several trainings in one table and figure."
    ),
    "bandits": Command("esbas.training.commands.bandits:Bandits", "List the bandits that can be selectors, or describe one."),
    "study create": Command("esbas.studies.create:CreateStudy", "Create a durable study: choices for a live system."),
    "study list": Command("esbas.studies.list:ListStudies", "List the studies in a store."),
    "study show": Command("esbas.studies.show:ShowStudy", "Show a study, and what a choice depends on."),
    "study replay": Command("esbas.studies.replay:ReplayStudy", "Recompute every choice of a study from its log."),
    "study copy": Command("esbas.studies.copy:CopyStudy", "Copy a study to another store."),
    "study export": Command("esbas.studies.export:ExportStudy", "Write the log of a study as CSV."),
    "study compare": Command(
        "esbas.studies.compare:CompareSelectors", "What another selector would have achieved on the log of a study."
    ),
    "serve": Command("esbas.server.command:Serve", "Serve the studies of a store over HTTP, with a page that shows them."),
    "board": Command("esbas.server.board_command:Board", "Show trainings in a browser, while they run or afterwards."),
    "demo": Command("esbas.experiments.demo:Demo", "SSBAS and ESBAS choose among Q-learners on a small task (a minute)."),
    "play": Command(
        "esbas.experiments.play:Play", "Take part in the paper's negotiation dialogue, as the user or as the system."
    ),
}

HELP = """\
Usage: esbas COMMAND [options]

Which of my reinforcement-learning algorithms should control the next episode?
esbas answers online: a bandit picks one learner of a portfolio per episode, and every learner learns from every episode.

Commands
{commands}

Options
  -h, --help      Show this help; after a command, the help of that command.
  --version       Show the version.

Examples
  esbas train CartPole-v1                Choose among six DQNs; live view, figures and report in ./esbas-CartPole-v1
  esbas train --example                  Write a commented portfolio to start from
  esbas demo                             First results without deep learning: table, figure and report in ./esbas-demo
  esbas demo --runs 100 --out my-demo    More runs, in another folder
  esbas reproduce bounds --help          Describe an experiment and its options

Results go to a folder (--out). Ctrl-C keeps what is finished; the same command continues from there.
"""

STUDY_HELP = """\
Usage: esbas study COMMAND URL [NAME] [options]

Durable studies: a selector with a name and a log, which any number of processes share (docs/studies.md).
URL is sqlite:///FILE, the path of a file, or postgresql://user:password@host/database.

Commands
{commands}

Examples
  esbas study create bot.db support --arms rules small large --expire-after 3600
  esbas study show bot.db support --choice 17
  esbas study copy bot.db support postgresql://bot@database/bots
"""

REPRODUCE_HELP = """\
Usage: esbas reproduce EXPERIMENT [options]

Run an experiment and write tables, figures and a report to ./esbas-EXPERIMENT.

Experiments
{experiments}

Examples
  esbas reproduce bounds --runs 100 --out quick-bounds
  esbas reproduce bounds --help
  esbas reproduce my_experiment:MyExperiment       The class MyExperiment in my_experiment.py in the current folder
"""


def program() -> NoReturn:
    """Entry point of the `esbas` script: run `main` and exit with its code."""
    with suppress(OSError):  # the current folder may have been deleted
        folder = os.getcwd()  # noqa: PTH109  # as sys.path has it
        if not {"", folder} & set(sys.path):
            sys.path.append(folder)  # `module:Class` finds modules in the current folder; worker processes inherit sys.path
    code = main()
    if code == INTERRUPTED:  # compiled runs may still execute in threads, and an orderly shutdown can crash then
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code: 0, 2 for invalid input or an error of the file system, 130 for Ctrl-C."""
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except EsbasError as error:
        print(f"esbas: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer goes nowhere
        return 2
    except OSError as error:
        print(f"esbas: {file_error(error)}", file=sys.stderr)
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
        summaries = {name: each.summary for name, each in COMMANDS.items()}
        listed = {f"reproduce {name}": summary for name, summary in experiments.summaries().items()}
        print(HELP.format(commands=_list(summaries | listed)), end="")
        return 0
    if command == "reproduce":
        return _reproduce(rest)
    if command == "study":
        return _study(rest)
    if command not in COMMANDS:
        raise unknown("command", command, [*COMMANDS, "reproduce", "--help", "--version"])
    return _call(f"esbas {command}", *COMMANDS[command].load(), rest)


def _study(words: list[str]) -> int:
    known = {name.removeprefix("study "): each for name, each in COMMANDS.items() if name.startswith("study ")}
    if not words or words[0] in ("-h", "--help"):
        print(STUDY_HELP.format(commands=_list({name: each.summary for name, each in known.items()})), end="")
        return 0
    if words[0] not in known:
        raise unknown("command study", words[0], known)
    return _call(f"esbas study {words[0]}", *known[words[0]].load(), words[1:])


def _reproduce(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        own = "Your own experiment: a class that inherits esbas.experiments.options.SweepOptions and defines `run`."
        print(REPRODUCE_HELP.format(experiments=_list(experiments.summaries() | {"module:Class": own})), end="")
        return 0
    experiment = experiments.find_experiment(words[0])
    return _call(f"esbas reproduce {words[0]}", experiment, experiment.run, words[1:])


def _call(program: str, config: Any, execute: Any, words: list[str]) -> int:
    from esbas.parsing import parse  # imported here, so that `esbas --version` and `--help` are fast

    execute(parse(config, words, program=program))
    return 0


def _list(summaries: Mapping[str, str]) -> str:
    width = max(map(len, summaries)) + 2
    return "\n".join(f"  {name:<{width}}{summary}" for name, summary in summaries.items())
