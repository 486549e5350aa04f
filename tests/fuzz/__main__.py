"""`python -m fuzz`: run the targets, each in a process with 1 GB of memory.

python -m fuzz                                  # all targets
python -m fuzz --seed 7 --count 5000            # other inputs, more of them
python -m fuzz --target "run files" --first 1234 --count 1   # one input again
"""

import argparse
import os
import resource
import subprocess
import sys
import time

from fuzz.harness import find_targets, try_input

MEMORY = 10**9  # bytes
MAX_FAILURES = 5  # per target


def run(name: str, seed: int, first: int, count: int) -> int:
    """Try these inputs and return the number of failures."""
    failures = 0
    start = time.monotonic()
    for number in range(first, first + count):
        problem = try_input(name, seed, number)
        if problem is not None:
            failures += 1
            print(
                f'FAILED: python -m fuzz --target "{name}" --seed {seed} --first {number} '
                "--count 1\n"
                f"{problem}",
                flush=True,
            )
            if failures == MAX_FAILURES:
                break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"{name}: {number - first + 1} inputs, {failures} failures, "
        f"{time.monotonic() - start:.0f} s, {peak:.0f} MB",
        flush=True,
    )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", help="run this target only, in this process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, default=2_500, help="inputs per target")
    options = parser.parse_args()
    targets = find_targets()
    if options.target is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        return int(run(options.target, options.seed, options.first, options.count) > 0)
    print(
        f"seed {options.seed}, {options.count} inputs for each of {len(targets)} targets",
        flush=True,
    )
    numbers = [
        "--seed",
        str(options.seed),
        "--first",
        str(options.first),
        "--count",
        str(options.count),
    ]
    # threads reserve memory
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    codes = [
        subprocess.run(
            [sys.executable, "-m", "fuzz", "--target", name, *numbers], env=environment, check=False
        ).returncode
        for name in targets
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
