"""How rates of learning and exploration fall with the number of the episode, from 1."""


def linear(start: float, horizon: float, episode: int) -> float:
    """From `start` down to 0, which is reached after `horizon` episodes: start · max(0, 1 - (τ - 1) / horizon)."""
    return start * max(0.0, 1 - (episode - 1) / horizon)


def hyperbolic(start: float, decay: float, episode: int) -> float:
    """From `start` down, ever more slowly: start / (1 + decay · τ); constant for decay = 0."""
    return start / (1 + decay * episode)
