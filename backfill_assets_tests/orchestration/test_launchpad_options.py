"""The launchpad asks for every option of the command: what it leaves out is listed here, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.cli.app import GROUPS, VERBS
from backfill_assets.cli.lazy_commands import Verbs
from backfill_assets.orchestration.definitions import defs

JOBS = (
    "plan", "apply", "approve", "promote", "abandon", "rollback", "undo", "pause", "resume", "stop",
)  # fmt: skip
"""The verbs that are jobs of the launchpad, each under its own name."""

WITHOUT_JOB = {
    "show": "the page of every run of a plan shows the plan; the runs have its tag",
    "evidence": "promoting and going back write it; the rest reads a folder",
    "checklist": "it writes nothing; the page of a run shows the plan that it is about",
    "diff": "it writes nothing, and its answer is as long as its reader wants",
    "approvals": "it writes nothing, and its answer is as long as its reader wants",
    "accept": "the launchpad can only be told a name, and an acceptance is a person's word",
    "acknowledge": "the launchpad can only be told a name, and an answer is a consumer's word",
    "notices": "it changes no history, and the sensor asks for its job",
    "results": "it changes no history; what people have concluded is theirs to say",
    "hold": "it changes what one reader reads, and no history",
    "release": "it changes what one reader reads, and no history",
    "aftercare": "the sensor asks for its job, look by look; on the launchpad it takes one plan",
    "adopt": "done once, by whoever moves a table here from a shell",
}
"""The other verbs that change history or look at a plan, and why they are not in the launchpad."""

OTHER_NAMES = {"env": "environment", "start": "first", "end": "last", "time": "at"}
"""Options with longer names in the launchpad, whose fields stand there without an example."""

OF_THE_SHELL = {
    "yes": "launching a run is the answer",
    "as_json": "how a shell is answered",
    "markdown": "how a shell is answered; a run's page always has Markdown",
    "verbose": "how a shell is answered; a run's page has the whole plan",
    "out": "a file of the shell's machine",
}
"""Options that no job has, and why."""

OF_THE_SHELL_IN = {
    (
        "apply",
        "env",
    ): "it is of a plan that `apply` makes itself; in the launchpad the job `plan` makes it",
}
"""Options of one verb that its job lacks, and why."""

OF_THE_LAUNCHPAD = {
    "who": "the shell knows its user; the launchpad can only be told a name",
}
"""Fields that no option stands for, and why."""


def options(verb: str) -> set[str]:
    """The options and arguments of a verb, by the names that the launchpad should have."""
    own = {str(option.name) for option in Verbs(VERBS)[verb].params} - {"help"}
    shown = own - OF_THE_SHELL.keys()
    return {
        OTHER_NAMES.get(option, option) for option in shown if (verb, option) not in OF_THE_SHELL_IN
    }


def form(job: str) -> dict[str, Any]:
    """What the launchpad asks for, by name."""
    [op] = defs.resolve_job_def(job).graph.node_defs
    fields: Any = getattr(op, "config_schema", None)
    return dict(fields.config_type.fields)


@pytest.mark.parametrize("verb", JOBS)
def test_the_launchpad_asks_for_every_option_of_the_command(verb: str):
    assert form(verb).keys() - OF_THE_LAUNCHPAD.keys() == options(verb)


@pytest.mark.parametrize("verb", JOBS)
def test_every_field_of_the_launchpad_is_described(verb: str):
    assert [name for name, field in form(verb).items() if not field.description] == []


def test_every_verb_of_a_plan_is_in_the_launchpad_or_listed_with_the_reason():
    assert sorted((*JOBS, *WITHOUT_JOB)) == sorted(GROUPS["Change history"])


def test_no_exception_is_for_an_option_that_is_gone():
    known = {(verb, option.name) for verb in JOBS for option in Verbs(VERBS)[verb].params}

    assert {name for _, name in known} >= OF_THE_SHELL.keys()
    assert known >= OF_THE_SHELL_IN.keys()
    assert all(form(verb).keys() >= OF_THE_LAUNCHPAD.keys() for verb in JOBS)
