"""Pools: a model, or a source that is landed, has one; so one run of it writes at a time."""


def pool(name: str) -> str:
    """Name the pool of a model."""
    return name.replace(".", "__")
