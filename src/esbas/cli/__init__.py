"""The command line: `esbas COMMAND [options]`.

tyro derives the options from the fields of the command's configuration class.
"""

import os
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from esbas import __version__, experiments
from esbas._internal.files import file_error
from esbas._internal.links import page
from esbas._internal.registry import import_object, where
from esbas.errors import BrokenEnvError, EsbasError, NoLearnerError, TrainingError, unknown

INVALID = 2
NO_LEARNER = 3
BROKEN_ENV = 4
INTERRUPTED = 130
_SLOW_IMPORT = "scipy"  # what all commands with an opening load


@dataclass(frozen=True)
class Command:
    """A command.

    The configuration class has a method `run`, or the module has a function `main` that takes the
    configuration.

    Attributes:
        config: `module:Class` of the configuration, imported when the command is called.
        summary: for the help.
        module: of the function `main`, imported after the options have been read. Default: that of
            the class.
        opening: the first line of output, printed before anything that takes seconds is imported.
            `{name}` stands for the option with this name.
    """

    config: str
    summary: str
    module: str = ""
    opening: str = ""

    def load(self) -> tuple[Any, Callable[[Any], None]]:
        """Return the configuration class, and the function that executes a configuration."""
        return import_object(self.config), self._execute

    def _execute(self, config: Any) -> None:
        run = getattr(config, "run", None)
        if run is not None:
            run()
        else:
            import_module(self.module or self.config.partition(":")[0]).main(config)


TRAINING_COMMANDS = {
    "demo": Command(
        "esbas.cli.demo:Demo",
        "Train on CartPole-v1 with three seeds, and write a report (a minute or two).",
        opening="Four DQNs learn to balance a pole, and a bandit chooses which of them acts.",
    ),
    "train": Command(
        "esbas.training.config:TrainingConfig",
        "Train a portfolio of learners on any Gymnasium environment.",
        "esbas.cli.train",
        opening="Preparing the training on {env}.",
    ),
    "resume": Command(
        "esbas.cli.resume:Resume",
        "Continue a stopped or killed training, or extend it.",
        opening="Preparing the training in {folder}.",
    ),
    "evaluate": Command(
        "esbas.cli.evaluate_options:Evaluate",
        "Play, and render, the best policy of a training.",
        "esbas.cli.evaluate",
        opening="Loading the training in {folder}.",
    ),
    "export": Command(
        "esbas.cli.export:Export",
        "Write the best policy of a training for use without esbas.",
        opening="Loading the training in {folder}.",
    ),
    "compare": Command(
        "esbas.cli.compare:Compare",
        "Compare trainings: learning curves in one table and figure.",
        opening="Loading the trainings.",
    ),
    "board": Command(
        "esbas.cli.board:Board",
        "Show trainings in a browser, while they run or afterwards.",
    ),
    "example": Command(
        "esbas.cli.train:Example",
        "Write a commented portfolio of learners to start from.",
    ),
    "bandits": Command(
        "esbas.cli.bandits:Bandits",
        "List the bandits that can be selectors, or describe one.",
    ),
}
STUDY_COMMANDS = {
    "study create": Command(
        "esbas.cli.study.create:CreateStudy",
        "Create a durable study: choices for a live system.",
    ),
    "study list": Command(
        "esbas.cli.study.list:ListStudies",
        "List the studies in a store.",
    ),
    "study show": Command(
        "esbas.cli.study.show:ShowStudy",
        "Show a study, and what a choice depends on.",
    ),
    "study replay": Command(
        "esbas.cli.study.replay:ReplayStudy",
        "Recompute every choice of a study from its log.",
    ),
    "study copy": Command(
        "esbas.cli.study.copy:CopyStudy",
        "Copy a study to another store.",
    ),
    "study export": Command(
        "esbas.cli.study.export:ExportStudy",
        "Write the log of a study as CSV.",
    ),
    "study compare": Command(
        "esbas.cli.study.compare:CompareSelectors",
        "Estimate what another selector would have achieved on the log.",
    ),
    "serve": Command(
        "esbas.cli.serve:Serve",
        "Serve the studies of a store over HTTP, with a page that shows them.",
    ),
}
EXPERIMENT_COMMANDS = {
    "play": Command(
        "esbas.experiments.play:Play",
        "Take part in the paper's negotiation dialogue, as the user or as the system.",
    ),
}
COMMANDS = TRAINING_COMMANDS | STUDY_COMMANDS | EXPERIMENT_COMMANDS
"""All commands but `reproduce`, whose experiments are found in their package."""

HELP = """\
Usage: esbas COMMAND [options]

Which of my reinforcement-learning algorithms should control the next episode?
esbas answers online: a bandit picks one learner of a portfolio per episode, and
every learner learns from every episode.

Train on an environment
{trainings}

Choose in a live system
{studies}

Run experiments
{experiments}

Options
  -h, --help  Show this help; after a command, the help of that command.
  --version   Show the version.

Examples
  # Choose among four DQNs: live view, figures, report in ./esbas-CartPole-v1.
  esbas train CartPole-v1
  # Write a commented portfolio to start from.
  esbas example
  # The same on a smaller budget, with three seeds, in ./esbas-demo.
  esbas demo
  # Describe an experiment and its options.
  esbas reproduce bounds --help

Results go to a folder (--out). Ctrl-C keeps what is finished; the same command
continues from there.

Exit codes
  0    The command finished; that nothing was learnt is a result, too.
  2    Invalid input, a run that stopped with an error, or an error of the file
       system.
  3    No learner of a training was able to act or learn.
  4    The environment does not fit its spaces or Gymnasium's API.
  130  Ctrl-C.
"""

STUDY_HELP = """\
Usage: esbas study COMMAND URL [NAME] [options]

Durable studies: a selector with a name and a log, which any number of processes
share: {page}
URL is sqlite:///FILE, the path of a file, or
postgresql://user:password@host/database.

Commands
{commands}

Examples
  # A study with three arms. Choices without a value are given up after an hour.
  esbas study create bot.db support --arms rules small large --expire-after 3600
  # Explain choice 17.
  esbas study show bot.db support --choice 17
  # Continue in another database.
  esbas study copy bot.db support postgresql://bot@database/bots
"""

REPRODUCE_HELP = """\
Usage: esbas reproduce EXPERIMENT [options]

Run an experiment and write tables, figures and a report to ./esbas-EXPERIMENT.

Experiments
{experiments}

Examples
  # Fewer runs than the experiment has by default, in another folder.
  esbas reproduce bounds --runs 100 --out quick-bounds
  # Describe the experiment and its options.
  esbas reproduce bounds --help
  # The class MyExperiment in my_experiment.py in the current folder.
  esbas reproduce my_experiment:MyExperiment
"""
_OWN_EXPERIMENT = (
    "Your own experiment: a class that inherits esbas.experiments.options.SweepOptions "
    "and defines `run`."
)
_WIDTH = 80  # columns of these helps


def program() -> NoReturn:
    """Run `main` and exit with its code; the entry point of the `esbas` script."""
    with suppress(OSError):  # the current folder may have been deleted
        folder = os.getcwd()  # noqa: PTH109  # as sys.path has it
        if not {"", folder} & set(sys.path):
            # So `module:Class` finds modules in the current folder. Other processes inherit it.
            sys.path.append(folder)
    code = main()
    # Compiled runs may still execute in threads, and an orderly shutdown can crash then.
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    It is 0; 2 for invalid input, a run that stopped with an error, or an error of the file system;
    3 if no learner of a training was able to act or learn; 4 if the environment returned what does
    not fit its spaces or Gymnasium's API; or 130 for Ctrl-C.
    """
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except NoLearnerError as error:
        print(f"esbas: {error}", file=sys.stderr)
        return NO_LEARNER
    except BrokenEnvError as error:
        print(f"esbas: {error}", file=sys.stderr)
        return BROKEN_ENV
    except EsbasError as error:
        print(f"esbas: {error}", file=sys.stderr)
        return INVALID
    except BrokenPipeError:  # the program that read the output, such as `head`, has ended
        # Discard what is left in the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INVALID
    except OSError as error:
        print(f"esbas: {file_error(error)}", file=sys.stderr)
        return INVALID
    except KeyboardInterrupt:
        print("esbas: stopped; the same command continues with what is finished", file=sys.stderr)
        return INTERRUPTED


def _main(words: list[str]) -> int:
    command = words[0] if words else "--help"
    rest = words[1:]
    if command == "--version":
        print(f"esbas {__version__}")
        return 0
    if command in ("-h", "--help"):
        _print_help()
        return 0
    if command == "reproduce":
        return _reproduce(rest)
    if command == "study":
        return _study(rest)
    if command not in COMMANDS:
        raise unknown("command", command, [*COMMANDS, "reproduce", "--help", "--version"])
    known = COMMANDS[command]
    return _call(f"esbas {command}", *known.load(), rest, opening=known.opening)


def _print_help() -> None:
    reproductions = {f"reproduce {name}": text for name, text in experiments.summaries().items()}
    text = HELP.format(
        trainings=_listed(_summaries(TRAINING_COMMANDS)),
        studies=_listed(_summaries(STUDY_COMMANDS)),
        experiments=_listed(_summaries(EXPERIMENT_COMMANDS) | reproductions),
    )
    print(text, end="")


def _study(words: list[str]) -> int:
    known: dict[str, Command] = {}
    for name, command in STUDY_COMMANDS.items():
        if name.startswith("study "):
            known[name.removeprefix("study ")] = command
    if not words or words[0] in ("-h", "--help"):
        commands = _listed(_summaries(known))
        print(STUDY_HELP.format(page=page("studies"), commands=commands), end="")
        return 0
    if words[0] not in known:
        raise unknown("command study", words[0], known)
    return _call(f"esbas study {words[0]}", *known[words[0]].load(), words[1:])


def _reproduce(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        listed = _listed(experiments.summaries() | {"module:Class": _OWN_EXPERIMENT})
        print(REPRODUCE_HELP.format(experiments=listed), end="")
        return 0
    wants_help = "-h" in words or "--help" in words
    if words[0] in experiments.summaries() and not wants_help:
        _print_opening(f"Loading the experiment {words[0]}.")
    experiment = experiments.find_experiment(words[0])
    return _call(f"esbas reproduce {words[0]}", experiment, experiment.run, words[1:])


def _call(program: str, config: Any, execute: Any, words: list[str], *, opening: str = "") -> int:
    # Imported here, so that `esbas --version` and `--help` are fast.
    from esbas.cli.parsing import parse

    def announce(options: Mapping[str, Any]) -> None:
        if opening and options.get("progress", True):
            _print_opening(opening.format_map(options))

    options = parse(config, words, program=program, announce=announce)  # it exits after --help
    try:
        execute(options)
    except SystemExit as error:
        if error.code:  # a failure in any case
            raise
        # Of a learner or an environment, for example: it must not look like a success.
        raise TrainingError(
            f"`{program}` did not finish, because code that it called raised "
            f"SystemExit({error.code!r}): remove this exit{where(error)}."
        ) from error
    return 0


def _print_opening(sentence: str) -> None:
    """Print the first line, unless a caller in Python has loaded what takes seconds."""
    if _SLOW_IMPORT not in sys.modules:
        print(sentence, file=sys.stderr, flush=True)


def _summaries(commands: Mapping[str, Command]) -> dict[str, str]:
    return {name: command.summary for name, command in commands.items()}


def _listed(summaries: Mapping[str, str]) -> str:
    """Return a line per name, with its summary, which may take several lines."""
    width = max(len(name) for name in summaries)
    lines: list[str] = []
    for name, summary in summaries.items():
        first = f"  {name:<{width}}  "
        rest = " " * len(first)
        lines.append(
            textwrap.fill(
                summary,
                _WIDTH,
                initial_indent=first,
                subsequent_indent=rest,
                break_on_hyphens=False,
            )
        )
    return "\n".join(lines)
