"""nbgrader's exchange, for teacher and students: hand out, hand in, collect.

JUPYTER_CONFIG_PATH leads here. Grading is the course's own (``python -m apex_lessons
grade``); of nbgrader only the exchange is used.
"""

import os
import pwd
from datetime import datetime, timezone
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect

c = get_config()  # noqa: F821  (nbgrader defines it)

MOST = 5  # notebooks of one student
SHARED = "jovyan"  # in containers often everyone's account


class CollectByOwner(ExchangeCollect):
    """Collects what was handed in by who owns it, and when the machine says it was.

    Students may write any folder into the exchange. nbgrader believes a folder's name,
    follows links with the teacher's rights, and stops at the first folder that cannot
    be copied; here a forged name does not count, and one student's folder cannot keep
    the others' from being collected.
    """

    def _path_to_record(self, path):
        about = os.lstat(path)
        owner = owner_of(about.st_uid)
        if owner == SHARED:  # nothing but the name tells users apart
            owner = os.path.basename(path).split("+")[0]
        return {"username": owner, "filename": os.path.basename(path),
                "timestamp": time_of(about)}

    def do_copy(self, src, dest, log=None):
        """The notebooks of a folder, without links, and the time."""
        from apex_lessons.grading.collected import Refused, read

        Path(dest).mkdir(parents=True)
        for path in notebooks_in(src, f"{self.coursedir.assignment_id}.ipynb"):
            try:
                Path(dest, path.name).write_bytes(read(path))
            except Refused as refusal:
                self.log.error(f"{path}: {refusal}")
        written = time_of(os.lstat(src)).isoformat(" ")
        Path(dest, "timestamp.txt").write_text(f"{written} UTC\n", encoding="utf-8")


def owner_of(user):
    """The account's name, or its number where it has none any more."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def time_of(about):
    """When a folder was last changed, in UTC. Its owner can name other times only."""
    moment = datetime.fromtimestamp(about.st_ctime, timezone.utc)
    return moment.replace(tzinfo=None)


def notebooks_in(folder, first):
    """At most MOST notebooks of a folder that is no link; ``first`` comes first."""
    if os.path.islink(folder) or not os.access(folder, os.R_OK | os.X_OK):
        return []
    found = [path for path in Path(folder).iterdir() if path.suffix == ".ipynb"]
    return sorted(found, key=lambda path: (path.name != first, path.name))[:MOST]


c.CourseDirectory.course_id = "apex"
c.CourseDirectory.release_directory = "student"  # as `make assignments` names it
c.Exchange.root = os.environ.get("APEX_EXCHANGE", "/srv/nbgrader/exchange")
c.ExchangeFactory.collect = CollectByOwner
