"""Size bias: longer texts look more similar to everything, and by how much."""

from stscurate.methods.cosines import cosine_moments

__all__ = ["cosine_moments"]
