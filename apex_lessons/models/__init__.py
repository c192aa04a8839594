"""Facts about models: APEX-1's four sizes, released models, and what a config file says.

Importing this package pulls in torch and nothing else.
"""

from apex_lessons.models.apex1 import Apex1Config, apex1_config
from apex_lessons.models.published import PublishedModel, published

__all__ = ["Apex1Config", "PublishedModel", "apex1_config", "published"]
