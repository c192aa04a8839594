"""Grading a class: strangers' notebooks in, points and words out.

A submission runs in a sandbox (``sandbox``), where ``runner`` executes its cells and
calls its functions on hidden inputs. What comes back are plain values; ``judge``, in a
process that no submission ever touches, compares them with the right ones. ``task``
says what an assignment is, ``classroom`` grades a folder of submissions.
"""
