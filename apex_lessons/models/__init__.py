"""Facts about models: APEX-1's four sizes, released models, and what a config file says.

Importing this package pulls in torch and nothing else.
"""

from apex_lessons.models.apex1 import Apex1Config, apex1_config

__all__ = ["Apex1Config", "apex1_config"]
