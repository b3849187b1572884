"""`backfill release`: let a held consumer read the published data again."""

from __future__ import annotations

from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.verbs.hold import Named  # noqa: TC001 - typer reads it
from backfill_assets.engine.project.holds import release_consumer
from backfill_assets.intervals.text import counted


def release(consumer: Named, as_json: AsJson = False) -> None:
    """End a hold: in one transaction the consumer reads the published data again, in all of its models.

    The cells whose data differ for the consumer are listed, model by model. Write its file of views again, if it has one;
    the tables it read before are kept for a day.

    Exit code: 0 when the consumer is released; 1 when it was not held.

    Example: backfill release "yearly accounts"
    """
    with operating() as at:
        current_hold = at.store.holds.of_consumer(consumer)
        if current_hold is not None:
            at.may_change(current_hold.of)
        ended, differs = release_consumer(at.project, consumer)
        changed = at.naming.by_model(differs)
    if as_json:
        print_json({"consumer": ended.consumer, "reads": ended.of, "changed": changed})
        return
    for model, cells in changed.items():
        say(f"now reads different data: {model} {cells}", indent=2)
    models = counted(len(changed), "model") if changed else "nothing"
    say(f"{ended.consumer}: reads {ended.of} again; {models} changed for it.")
