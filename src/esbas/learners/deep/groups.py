"""Finds the group in which a network is trained.

Compiled for dense networks on the CPU, PyTorch for all others, and beside the acting for those that may be one update behind.
"""

from importlib.util import find_spec
from typing import Any

from esbas.learners.deep.dense_group import DenseGroup
from esbas.learners.deep.group import Group
from esbas.learners.deep.layout import NetworkLayout
from esbas.learners.deep.replay import SharedReplay


def group_for(replay: SharedReplay, network: NetworkLayout, *, batch: int, optimizer: str, device: str, overlap: bool) -> Group:
    """The group of networks like this one, created at its first use. PyTorch is imported only if it is needed."""
    found = _torch_device(network, device, overlap)
    key = network.convolutions, tuple(network.shapes), batch, optimizer, found, overlap
    if key not in replay.groups:
        if found is None:
            replay.groups[key] = DenseGroup(replay, network, batch=batch, optimizer=optimizer)
        elif overlap and found.type == "cpu":
            from esbas.learners.deep.overlapped import OverlappedGroup

            replay.groups[key] = OverlappedGroup(replay, network, batch=batch, optimizer=optimizer)
        else:
            from esbas.learners.deep.batched import TorchGroup

            replay.groups[key] = TorchGroup(replay, network, batch=batch, optimizer=optimizer, device=found, overlap=overlap)
    group: Group = replay.groups[key]
    return group


def _torch_device(network: NetworkLayout, device: str, overlap: bool) -> Any:
    """The device of PyTorch that evaluates this network; None if PyTorch is not needed."""
    dense = not (network.convolutions or overlap)
    if dense and (device == "cpu" or (device == "auto" and find_spec("torch") is None)):
        return None
    from esbas.learners.deep.pytorch import find_device

    found = find_device(device)
    return None if dense and found.type == "cpu" else found
