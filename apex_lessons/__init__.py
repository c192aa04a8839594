"""APEX lessons: what happens to a token before attention.

``import apex_lessons`` pulls in torch and nothing else; figures, explorers and
exercises are separate imports.
"""

from apex_lessons import embedding, norm, rope, yarn

__all__ = ["embedding", "norm", "rope", "yarn"]
__version__ = "1.0.0"
