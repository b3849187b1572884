"""Channels: where notices go, as a file of Apprise names them; the addresses stand in that file alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from types import ModuleType

_SHOWN = 200


class DeliveryError(BackfillAssetsError):
    """A notice can't be delivered over a channel."""

    def __init__(self, channel: str, why: str) -> None:
        self.channel, self.why = channel, why
        super().__init__(f"channel '{channel}' did not accept the notice: {why}")


class Deliver(Protocol):
    """Delivers a notice over a channel."""

    def __call__(self, channel: str, title: str, text: str) -> None:
        """Deliver it.

        Raises:
            DeliveryError: it could not be.
        """
        ...


def without_channels(channel: str, title: str, text: str) -> None:  # noqa: ARG001 - as `Deliver` has it
    """Deliver nothing: no file of channels is named.

    Raises:
        DeliveryError: always.
    """
    raise DeliveryError(channel, "no file of channels is named; BACKFILL_CHANNELS names it")


def channels_of(path: str) -> Deliver:
    """Give what delivers over the channels of a file.

    Each line of it names channels, a ``=`` and an address as Apprise has it, ``finance=slack://...``; YAML is
    read as well. ``file:///srv/notices.txt`` appends to a file. A channel with several addresses takes a notice
    when all of them do, and is tried again as a whole.

    Args:
        path: of the file; empty: no channel is there.
    """
    if not path:
        return without_channels

    def deliver(channel: str, title: str, text: str) -> None:
        apprise = _apprise(channel)
        config = apprise.AppriseConfig()
        if not Path(path).is_file() or not config.add(str(Path(path).resolve())):
            raise DeliveryError(channel, f"the file of channels {path} can't be read")
        book = apprise.Apprise()
        book.add(config)
        if not list(book.find(tag=channel)):
            raise DeliveryError(channel, f"{path} has no channel of this name")
        with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as log:
            if not book.notify(title=title, body=text, tag=channel):
                raise DeliveryError(channel, " ".join(log.getvalue().split())[:_SHOWN])

    return deliver


def _apprise(channel: str) -> ModuleType:
    try:
        import apprise  # noqa: PLC0415 - an extra, and slow to load
        from apprise.decorators import notify  # noqa: PLC0415
    except ImportError as error:
        why = "Apprise is not installed; `pip install 'backfill-assets[notices]'`"
        raise DeliveryError(channel, why) from error
    if "file" not in apprise.NotificationManager():
        notify(on="file", name="a file that notices are appended to")(_append)
    return apprise


def _append(
    body: str,
    title: str,
    notify_type: object,  # noqa: ARG001 - Apprise passes it
    *_: object,
    meta: dict[str, Any],
    **__: object,
) -> bool:
    """Append a notice to the file of an address."""
    path = Path("/", str(meta["host"]), unquote(str(meta["fullpath"] or "")).lstrip("/"))
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{title}\n{body}\n\n")
    except OSError as error:
        logging.getLogger("apprise").warning("%s: %s", path, error.strerror or error)
        return False
    return True
