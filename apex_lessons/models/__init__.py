"""Facts about models: APEX-1's sizes, released models, what a config file says.

Importing this package pulls in torch and nothing else.
"""

from apex_lessons.models.apex1 import Apex1Config, apex1_config
from apex_lessons.models.ledger import Claim, Evidence, claims
from apex_lessons.models.comparison import Comparison, compare
from apex_lessons.models.config import RopeByLayerType, RopeSettings, rope_from_config
from apex_lessons.models.published import PublishedModel, published
from apex_lessons.models.remarks import ConfigError
from apex_lessons.models.report import Report, explain

__all__ = ["Apex1Config", "Claim", "Comparison", "ConfigError", "Evidence",
           "PublishedModel", "Report", "RopeByLayerType", "RopeSettings",
           "apex1_config", "claims", "compare", "explain", "published",
           "rope_from_config"]
