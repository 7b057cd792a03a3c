"""Size bias: longer texts look more similar to everything, and by how much."""

from stscurate.audit.size_bias.corpus import Corpus, read_corpus
from stscurate.audit.size_bias.stage import Settings, audit, audit_into
from stscurate.methods.cosines import cosine_moments

__all__ = ["Corpus", "Settings", "audit", "audit_into", "cosine_moments", "read_corpus"]
