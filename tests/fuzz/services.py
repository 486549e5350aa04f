"""The service of studies: mutated token files, and mutated answers to its client."""

import json
from typing import Any

import numpy as np

from esbas.studies.client.connection import error_of, read_answer
from esbas.studies.client.remote_study import choice_of, event_of
from esbas.studies.server.tokens import read_tokens
from fuzz.harness import target
from fuzz.mutations import mutated, mutated_bytes

TOKENS = b"""[[token]]
name = "bot"
scope = "write"
token = "0123456789abcdef"
expires = 2030-12-31T00:00:00Z
"""
CHOICE = {"number": 1, "arm": "a", "epoch": 0, "context": [1.0, None], "propensity": 0.5}
EVENT = CHOICE | {
    "seq": 1,
    "kind": "asked",
    "value": None,
    "at": 1.0,
    "key": "k",
    "data": {"among": ["a"]},
}


@target("token files")
def token_files(rng: np.random.Generator) -> None:
    read_tokens(mutated_bytes(TOKENS, rng), "tokens.toml")


@target("answers of services")
def answers_of_services(rng: np.random.Generator) -> None:
    read: Any = (choice_of, CHOICE) if rng.random() < 0.5 else (event_of, EVENT)
    function, answer = read
    read_answer(mutated_bytes(json.dumps(answer).encode(), rng))
    function(mutated(answer, rng, odd=True))


@target("errors of services")
def errors_of_services(rng: np.random.Generator) -> None:
    error = {"error": {"type": "ChoiceError", "message": "rule, value: remedy"}}
    raise error_of(409, mutated_bytes(json.dumps(error).encode(), rng))
