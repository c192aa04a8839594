"""Tests of apex_lessons.models."""
