"""A policy: who must approve which changes of published history, how many of them, and for how long.

It is a TOML file. `still_required` holds a plan's facts and its approvals against it, and gives what is
still required, in words; nothing here reads a file, a clock or a state.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.text import counted
from backfill_assets.intervals.zones import local_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_Name = Annotated[str, Field(min_length=1)]


class PolicyError(BackfillAssetsError):
    """A policy can't be what it says, or can't be read.

    Args:
        path: of its file.
        found: what is wrong, and what was meant where that can be told.
    """

    def __init__(self, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"the policy {path} can't be used: {found}. Nothing was written; correct the file that "
            "BACKFILL_POLICY names"
        )


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvironmentPolicy(_Strict):
    """Who may act in environments.

    Attributes:
        name: a glob of environments.
        promote: principals who may promote and take back; none named: a promotion needs no signature of its
            own, and those who may approve may take back.
        plan: principals who may plan and apply; none named: everyone.
        canaries: what follows once the canaries of a plan are built and compared: ``stop`` waits for the next
            apply, ``go on`` builds the rest at once where everything is as the plan expects.
        inventory: what an item does that is not met in the inventory of a plan's checklist: ``stop`` lets nothing
            be computed for the plan, ``show`` lets people decide.
    """

    name: _Name
    promote: tuple[_Name, ...] = ()
    plan: tuple[_Name, ...] = ()
    canaries: Literal["stop", "go on"] = "stop"
    inventory: Literal["stop", "show"] = "show"


class Rule(_Strict):
    """What needs whose approval; every rule that concerns a plan has to be met by itself.

    Without a condition it concerns plans that rewrite published cells, or remove a model. With conditions
    it concerns those of them that meet one.

    Attributes:
        environment: a glob of environments.
        models: globs of models; the rule concerns a plan that rewrites one of them.
        approvers: principals who may approve.
        approvals: how many different ones have to.
        owner: the validation owner, a principal who has to be one of them; empty: none.
        holds_days: for how many days an approval holds.
        always: whether it concerns plans that move these models without rewriting a cell, too.
        late_data: whether it concerns late data inside of late windows, too: cells that it concerns wait for a plan.
        closed_before: condition: a cell before this local date is rewritten.
        closed_after_days: condition: a cell that began longer ago than this is rewritten.
        over_cost: condition: the estimate (P90) costs more than this, or no cost is known.
        over_hours: condition: the estimate (P90) takes longer than this, or none is known.
    """

    environment: _Name = "prod"
    models: Annotated[tuple[_Name, ...], Field(min_length=1)] = ("*",)
    approvers: tuple[_Name, ...] = ()
    approvals: Annotated[int, Field(ge=1)] = 1
    owner: str = ""
    holds_days: Annotated[float, Field(gt=0, le=3650)] = 7.0
    always: bool = False
    late_data: bool = False
    closed_before: date | None = None
    closed_after_days: Annotated[int, Field(ge=0)] | None = None
    over_cost: Annotated[float, Field(ge=0)] | None = None
    over_hours: Annotated[float, Field(ge=0)] | None = None

    @property
    def may_approve(self) -> frozenset[str]:
        """Every principal whose approval counts, the validation owner too."""
        return frozenset(self.approvers) | ({self.owner} if self.owner else frozenset[str]())

    @model_validator(mode="after")
    def _can_be_met(self) -> Rule:
        if len(self.may_approve) < self.approvals:
            raise ValueError(
                f"asks for {counted(self.approvals, 'approval')}, and names {len(self.may_approve)} who may approve"
            )
        return self

    @model_validator(mode="after")
    def _is_judged_by_date(self) -> Rule:
        if self.late_data and (self.over_cost, self.over_hours) != (None, None):
            raise ValueError(
                "has late_data and a limit of the estimate, which late data has none of; write two rules"
            )
        return self


class Policy(_Strict):
    """A whole policy.

    Attributes:
        allowed_signers: the file of keys and their principals, as `ssh-keygen` reads it, seen from the
            policy's own folder.
        header: whether principals count whom the webserver knows by the header of an authenticating proxy.
        environments: who may act in which environment.
        rules: what needs whose approval.
    """

    allowed_signers: _Name = "allowed_signers"
    header: bool = False
    environments: tuple[EnvironmentPolicy, ...] = ()
    rules: tuple[Rule, ...] = ()

    def names(self, environment: str) -> bool:
        """Whether the policy says anything of an environment."""
        return bool(self.rules_of(environment)) or any(self._concerning(environment))

    def promoters(self, environment: str) -> frozenset[str]:
        """Give who may promote into an environment; empty: no signature is asked for."""
        return frozenset(name for each in self._concerning(environment) for name in each.promote)

    def goes_on(self, environment: str) -> bool:
        """Whether a plan builds the rest at once after canaries that are as it expects."""
        concerning = [*self._concerning(environment)]
        return bool(concerning) and all(each.canaries == "go on" for each in concerning)

    def needs_inventory(self, environment: str) -> bool:
        """Whether nothing is computed for a plan before every item of its inventory is met."""
        return any(each.inventory == "stop" for each in self._concerning(environment))

    def planners(self, environment: str) -> frozenset[str]:
        """Give who may plan and apply for an environment; empty: everyone."""
        return frozenset(name for each in self._concerning(environment) for name in each.plan)

    def restorers(self, environment: str) -> frozenset[str]:
        """Give who may take a plan back: who may promote, else who may approve; empty: everyone."""
        return self.promoters(environment) or frozenset(
            name for rule in self.rules_of(environment) for name in rule.may_approve
        )

    def rules_of(self, environment: str) -> tuple[Rule, ...]:
        """Give the rules about an environment."""
        return tuple(rule for rule in self.rules if fnmatchcase(environment, rule.environment))

    def principals(self) -> frozenset[str]:
        """Give every principal that the policy names."""
        named = (name for each in self.environments for name in (*each.promote, *each.plan))
        return frozenset(named).union(*(rule.may_approve for rule in self.rules))

    def _concerning(self, environment: str) -> Iterator[EnvironmentPolicy]:
        return (each for each in self.environments if fnmatchcase(environment, each.name))


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a plan does to what readers see of one model.

    Attributes:
        model: its name.
        rewritten: how many published cells differ afterwards.
        oldest: the local date of the first of them; None where there is none, and for a model
            without cells in time, whose whole history is one cell.
        removed: whether readers lose it.
        zone: the time zone in which its cells are dated.
    """

    model: str
    rewritten: int = 0
    oldest: date | None = None
    removed: bool = False
    zone: str = "UTC"

    @property
    def changes_history(self) -> bool:
        """Whether published cells differ afterwards, or are gone."""
        return self.removed or self.rewritten > 0


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a policy asks of a plan.

    Attributes:
        environment: whose history changes.
        authors: who made it: every name that its author may have; empty: not known.
        models: those whose pointers move.
        automatic: made by late data inside of late windows: nothing is required of it.
        cost: of the estimate (P90); None: not known.
        hours: of the estimate (P90); None: not known.
    """

    environment: str
    authors: frozenset[str] = frozenset()
    models: tuple[ModelFacts, ...] = ()
    automatic: bool = False
    cost: float | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A principal's valid agreement to a plan as it is.

    Attributes:
        principal: who.
        at: when it was signed.
    """

    principal: str
    at: datetime


def policy_hash(text: str) -> str:
    """Hash a policy as it is written."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_policy(text: str, path: str) -> Policy:
    """Read a policy.

    Args:
        text: the TOML.
        path: of its file, for errors.

    Raises:
        PolicyError: it is no TOML, a name in it is not known, or a value can't be what it says.
    """
    try:
        return Policy.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(path, f"it is no TOML: {error}") from error
    except ValidationError as error:
        raise PolicyError(path, _said(error)) from error


def _said(error: ValidationError) -> str:
    """Say what is the first that can't be used, and what was meant."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        return f"found '{where}', which is not a setting of a policy{meant(name, _fields(first['loc']))}"
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    return f"'{where}': {message}"


def _fields(where: tuple[int | str, ...]) -> tuple[str, ...]:
    kinds: dict[str, type[BaseModel]] = {"environments": EnvironmentPolicy, "rules": Rule}
    return tuple(kinds.get(str(where[0]), Policy).model_fields)


def meant(found: str, known: Iterable[str]) -> str:
    """Say what a name probably meant, as the end of a sentence; else what there is."""
    names = sorted(known)
    close = get_close_matches(found, names, n=1)
    if close:
        return f"; '{close[0]}' was probably meant"
    return f"; known are {', '.join(names)}" if names else ""


def unknown_names(
    policy: Policy, principals: Iterable[str], models: Iterable[str]
) -> tuple[str, ...]:
    """Find principals without a key, and globs that name no model: each in words, with what was meant."""
    keys, names = sorted(principals), sorted(models)
    unkeyed = (
        f"principal '{name}' has no key in {policy.allowed_signers}{meant(name, keys)}"
        for name in sorted(policy.principals() - {*keys})
    )
    globs = dict.fromkeys(glob for rule in policy.rules for glob in rule.models)
    unmatched = (
        f"'{glob}' matches no model{meant(glob, names)}"
        for glob in globs
        if not any(fnmatchcase(name, glob) for name in names)
    )
    return (*unkeyed, *unmatched)


def closed_to_late_data(
    policy: Policy, environment: str, model: str, now: datetime, zone: str
) -> date | None:
    """Give the local date before which late data of a model waits for a plan that people approve.

    Args:
        policy: who must approve what.
        environment: whose history it is.
        model: its name.
        now: the instant (UTC).
        zone: the time zone in which its cells are dated.

    Returns:
        The date; its maximum: every cell waits; None: none does.
    """
    dates = (
        max(_closed(rule, now, zone), default=date.max)
        for rule in policy.rules_of(environment)
        if rule.late_data and any(fnmatchcase(model, glob) for glob in rule.models)
    )
    return max(dates, default=None)


def still_required(
    policy: Policy, facts: PlanFacts, approvals: Sequence[Approval], now: datetime
) -> tuple[str, ...]:
    """Give what a plan still lacks before it may be published, in words; nothing: it may be.

    Args:
        policy: who must approve what.
        facts: what the plan does.
        approvals: those whose signature is right and whose parts are as they were.
        now: the instant (UTC).
    """
    if facts.automatic:
        return ()
    reasons = (
        f"{because}: {reason}"
        for rule in policy.rules_of(facts.environment)
        if (because := _because(rule, facts, now))
        for reason in _lacking(rule, facts, approvals, now)
    )
    return tuple(dict.fromkeys(reasons))


def approval_counts(rule: Rule, approval: Approval, now: datetime) -> bool:
    """Whether an approval counts for a rule at this time."""
    until = approval.at + timedelta(days=rule.holds_days)
    return approval.principal in rule.may_approve and now < until


def is_author(principal: str, authors: frozenset[str]) -> bool:
    """Whether a principal may be a plan's author: the same name, or its part before the @."""
    return principal in authors or principal.partition("@")[0] in authors


def _lacking(
    rule: Rule, facts: PlanFacts, approvals: Sequence[Approval], now: datetime
) -> Iterator[str]:
    """Say what a rule that concerns a plan still lacks."""
    given = {each.principal for each in approvals if approval_counts(rule, each, now)}
    others = {name for name in given if not is_author(name, facts.authors)}
    if len(given) < rule.approvals:
        lacking = rule.approvals - len(given)
        may = ", ".join(sorted(rule.may_approve - given))
        yield f"needs {counted(lacking, 'approval')} by {may}"
    if rule.owner and rule.owner not in given:
        yield f"needs the approval of its validation owner {rule.owner}"
    if len(given) < rule.approvals:
        return
    if not others:
        yield "needs an approval by another person than its author"
    if not facts.authors and len(given) == 1:
        yield "needs an approval by a second person, since it is not known who made the plan"


def _because(rule: Rule, facts: PlanFacts, now: datetime) -> str:
    """Say why a rule concerns a plan; empty: it does not."""
    models = [
        each
        for each in facts.models
        if any(fnmatchcase(each.model, glob) for glob in rule.models)
        and (rule.always or each.changes_history)
    ]
    if not models:
        return ""
    what = f"{_what(models)} of {facts.environment}"
    conditions = tuple(_conditions(rule, models, facts, now))
    if not conditions:
        return what
    met = [condition for condition in conditions if condition]
    return f"{what} ({', '.join(met)})" if met else ""


def _what(models: Sequence[ModelFacts]) -> str:
    names = ", ".join(each.model for each in models)
    changing = any(each.changes_history for each in models)
    return f"rewrites published history of {names}" if changing else f"moves {names}"


def _conditions(
    rule: Rule, models: Sequence[ModelFacts], facts: PlanFacts, now: datetime
) -> Iterator[str]:
    """Say of each condition why it is met; empty: it is not."""
    for closed in zip(*(_closed(rule, now, each.zone) for each in models), strict=True):
        yield _reaches(models, closed)
    if rule.over_cost is not None:
        yield _over(facts.cost, rule.over_cost, "cost")
    if rule.over_hours is not None:
        yield _over(facts.hours, rule.over_hours, "hours")


def _closed(rule: Rule, now: datetime, zone: str) -> Iterator[date]:
    """Give the dates before which a rule closes the cells of a model, as its clocks have them."""
    if rule.closed_before is not None:
        yield rule.closed_before
    if rule.closed_after_days is not None:
        today = date.fromordinal(local_day(zone, epoch_of(now)))
        yield today - timedelta(days=rule.closed_after_days)


def _reaches(models: Sequence[ModelFacts], closed: Sequence[date]) -> str:
    """Whether cells before a day change, of each model its own; one that is removed, or has no cells in time, reaches back."""
    reached = [
        day
        for each, day in zip(models, closed, strict=True)
        if each.changes_history and (each.removed or each.oldest is None or each.oldest < day)
    ]
    return f"closed before {max(reached)}" if reached else ""


def _over(value: float | None, allowed: float, unit: str) -> str:
    if value is None:
        return f"its {unit} are not known" if unit == "hours" else f"its {unit} is not known"
    return f"{unit} {value:,.2f}, more than {allowed:,.2f}" if value > allowed else ""
