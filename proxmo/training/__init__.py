"""Supervised and reinforcement learning of a policy, and its checkpoints."""
