"""Finds the group in which a network is trained.

Dense networks on the CPU are compiled, PyTorch trains all others, and networks that may be one
update behind are trained beside the acting.
"""

from importlib.util import find_spec
from typing import Any

from esbas.learners.dqn.compiled.dense_group import DenseGroup
from esbas.learners.dqn.group import Group
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.replay.memory import SharedReplay


def group_for(
    replay: SharedReplay,
    network: NetworkLayout,
    *,
    batch_size: int,
    optimizer: str,
    device: str,
    overlap: bool,
) -> Group:
    """Return the group of networks like this one, which is created at its first use.

    PyTorch is imported only if it is needed.
    """
    found = _torch_device(network, device, overlap)
    key = network.convolutions, tuple(network.shapes), batch_size, optimizer, found, overlap
    if key not in replay.groups:
        replay.groups[key] = _new_group(
            replay,
            network,
            batch_size=batch_size,
            optimizer=optimizer,
            device=found,
            overlap=overlap,
        )
    group: Group = replay.groups[key]
    return group


def _new_group(
    replay: SharedReplay,
    network: NetworkLayout,
    *,
    batch_size: int,
    optimizer: str,
    device: Any,
    overlap: bool,
) -> Group:
    if device is None:
        return DenseGroup(replay, network, batch_size=batch_size, optimizer=optimizer)
    if overlap and device.type == "cpu":
        from esbas.learners.dqn.overlapped.overlapped import OverlappedGroup

        return OverlappedGroup(replay, network, batch_size=batch_size, optimizer=optimizer)
    from esbas.learners.dqn.on_pytorch.batched import TorchGroup

    return TorchGroup(
        replay,
        network,
        batch_size=batch_size,
        optimizer=optimizer,
        device=device,
        overlap=overlap,
    )


def _torch_device(network: NetworkLayout, device: str, overlap: bool) -> Any:
    """Return the device of PyTorch that evaluates this network; None if PyTorch is not needed."""
    dense = not (network.convolutions or overlap)
    if dense and device == "cpu":
        return None
    if dense and device == "auto" and find_spec("torch") is None:
        return None
    from esbas.learners.dqn.on_pytorch.pytorch import find_device

    found = find_device(device)
    return None if dense and found.type == "cpu" else found
