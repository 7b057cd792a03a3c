"""stscurate: raw text in, semantic-textual-similarity data sets that can be trusted out."""

__version__ = "0.1.0"
