"""Tests; run with ``python -m pytest`` from the top folder."""
