"""A learner's function in, a diagnosis out."""

from apex_lessons.exercises.diagnosis import Diagnosis, Mistake

__all__ = ["Diagnosis", "Mistake"]
