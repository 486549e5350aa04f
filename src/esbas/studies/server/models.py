"""What clients send and get, as JSON.

The study itself checks the rules of `esbas.studies.requests`.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from esbas.studies.requests import LONGEST_NAME, MOST_ARMS, MOST_NUMBERS

LARGEST = 2**53  # whole numbers that every client can represent
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Key = Annotated[
    Name | None,
    Field(
        default=None,
        description=(
            "Any text, used for one request only: sent again, the request has the same answer."
        ),
    ),
]
Numbers = Annotated[list[float | None], Field(max_length=MOST_NUMBERS)]  # null: not a number
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class OpenRequest(_Request):
    """A study to create, or to open.

    An existing study needs only its name; settings that are given must be its own.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "support",
                    "selector": "esbas",
                    "arms": ["rules", "model A", "model B"],
                    "expire_after": 3600,
                }
            ]
        }
    )
    name: Name
    selector: Name | None = Field(
        default=None,
        description="A name of `esbas bandits`, `esbas` or `ssbas`; no `module:Class`.",
    )
    arms: Annotated[list[Name], Field(min_length=1, max_length=MOST_ARMS)] | None = None
    stationary: Annotated[list[Name], Field(max_length=MOST_ARMS)] = Field(
        default=[], description="The arms that never learn."
    )
    seed: Count = 0
    options: dict[str, Any] = Field(
        default={}, description="Parameters of the selector, such as `xi`."
    )
    expire_after: Seconds | None = Field(
        default=None, description="Seconds until a choice without a value is given up."
    )
    claim_expires: Seconds | None = Field(
        default=None, description="Seconds until a claimed epoch can be claimed again."
    )


class AskRequest(_Request):
    """A request for a choice."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"key": "conversation 17, start"}, {"among": ["rules"]}]}
    )
    among: Annotated[list[Name], Field(min_length=1, max_length=MOST_ARMS)] | None = Field(
        default=None, description="The arms that are available. Default: all."
    )
    context: Numbers | None = Field(default=None, description="What is known about the episode.")
    key: Key


class _OfChoice(_Request):
    choice: Annotated[int, Field(ge=1, le=LARGEST)] | None = Field(
        default=None, description="The number of the choice."
    )
    ask_key: Name | None = Field(
        default=None, description="Instead of the number: the key with which it was asked for."
    )
    arm: Name | None = Field(
        default=None, description="The arm of the choice, which is compared if it is given."
    )
    key: Key


class TellRequest(_OfChoice):
    """The value of a choice; larger is better."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"choice": 17, "value": 0.7, "key": "conversation 17, end"}]
        }
    )
    value: float = Field(allow_inf_nan=False)
    log_probs: dict[str, Numbers] | None = Field(
        default=None,
        description="Log-probabilities of the episode's actions under the policies of the arms.",
    )


class WithdrawRequest(_OfChoice):
    """A choice that has no value."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"choice": 17}]})


class ArmRequest(_Request):
    """A new arm."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "model C"}]})
    name: Name
    stationary: bool = False
    key: Key


class ClaimRequest(_Request):
    """Who claims, finishes or releases an epoch."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"claimant": "trainer 1"}]})
    claimant: Name
    key: Key


class ChoiceAnswer(BaseModel):
    """A choice."""

    number: Count
    arm: str
    epoch: Count
    context: list[float | None] | None = Field(
        description="What the arm was chosen for, if the selector uses it."
    )
    propensity: float | None = Field(
        description="The probability with which the arm was chosen, if it is known."
    )


class OpenChoiceAnswer(ChoiceAnswer):
    """A choice that was neither told nor withdrawn."""

    at: float = Field(description="When it was made, in seconds since 1970.")


class OpenChoicesAnswer(BaseModel):
    """The open choices, the oldest first; at most 1,000."""

    open: Count = Field(description="How many there are.")
    choices: list[OpenChoiceAnswer]


class NumberAnswer(BaseModel):
    """The number of the choice that was told or withdrawn."""

    number: Count


class SelectorAnswer(BaseModel):
    """The selector that a study was created with."""

    name: str
    arms: list[str]
    stationary: list[str]
    seed: int
    options: dict[str, Any]


class StudySummary(BaseModel):
    """A study in the list of all studies."""

    name: str
    selector: SelectorAnswer
    expire_after: float | None
    claim_expires: float
    created: float = Field(description="In seconds since 1970.")
    last: Count = Field(description="The number of the last event.")


class ClaimAnswer(BaseModel):
    """An epoch that a client prepares."""

    epoch: Count
    claimant: str
    until: float = Field(description="Seconds since 1970; afterwards, others can claim the epoch.")


class StudyAnswer(StudySummary):
    """A study as it is now."""

    arms: list[str]
    number: Count = Field(description="The number of choices so far.")
    epoch: Count
    open: Count = Field(description="The number of open choices.")
    claim: ClaimAnswer | None
    counts: dict[str, int] = Field(description="The number of events by kind.")


class StudiesAnswer(BaseModel):
    """All studies, in the order in which they were created."""

    studies: list[StudySummary]


class EventAnswer(BaseModel):
    """An event of the log; docs/studies.md lists the kinds and what each has."""

    seq: Count
    kind: str
    number: Count | None
    arm: str | None
    value: float | None
    propensity: float | None
    epoch: Count | None
    at: float
    key: str | None
    data: dict[str, Any]


class HistoryAnswer(BaseModel):
    """A page of the log."""

    events: list[EventAnswer]
    last: Count = Field(description="The number of the last event of the study.")


class ArmTotalsAnswer(BaseModel):
    """The totals of an arm in the rounds `part * width + 1` to `(part + 1) * width`."""

    part: Count
    arm: str
    asked: Count = Field(description="How often it was chosen.")
    told: Count = Field(description="How many of these choices have a value.")
    sum: float | None = Field(description="The sum of the values, minus `origin` each.")
    squares: float | None = Field(description="The sum of the squares of the same differences.")


class OverviewAnswer(BaseModel):
    """The whole log in a few hundred numbers."""

    last: Count = Field(description="The number of the last event that is contained.")
    width: Count = Field(description="Rounds in a part.")
    origin: float
    totals: list[ArmTotalsAnswer]


class ExplainAnswer(BaseModel):
    """What the next choice, or an earlier one, depends on."""

    choice: EventAnswer | None = Field(
        description="The event `asked` of the choice that is explained; null for the next one."
    )
    arms: dict[str, dict[str, float | None]] = Field(
        description="Per arm: what the selector knew. null: not a finite number."
    )


class ChoiceEventsAnswer(BaseModel):
    """The events of a choice, by kind."""

    events: dict[str, EventAnswer]


class CountsAnswer(BaseModel):
    """The number of events by kind."""

    counts: dict[str, int]


class ArmsAnswer(BaseModel):
    """The arms."""

    arms: list[str]


class EpochAnswer(BaseModel):
    """An epoch; null if none is due or another client prepares it."""

    epoch: Count | None


class ExpiredAnswer(BaseModel):
    """The numbers of the choices that have expired now."""

    expired: list[int]


class HealthAnswer(BaseModel):
    """The service works, and so does its store."""

    status: str
    version: str


class ErrorDetail(BaseModel):
    """What is wrong, and what to do."""

    type: str
    message: str


class ErrorAnswer(BaseModel):
    """The shape of every error.

    `type` is the name of a class in `esbas.errors`, or a word for an error of the service itself.
    """

    error: ErrorDetail
