"""The negotiation dialogue of the paper's Section 4.

The environment, user models, logs, transcripts and feature maps.
"""
