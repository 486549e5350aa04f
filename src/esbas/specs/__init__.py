"""Text and TOML become environments, learners, selectors and objectives; what is trusted."""
