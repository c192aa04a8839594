"""The class's own repository: all that students get, and nothing of what teachers keep.

    python assignments/hub/class_repository.py ~/apex-class

writes into that folder the pages, the package, the students' copies of the assignments,
what makes the environment, and the hub's configuration. The masters with the answers,
the hidden inputs and the tests stay here. Once more, it renews what it wrote; other
files there, and the folder's history in git, stay.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from urllib.parse import urlencode

HUB = Path(__file__).resolve().parent
ROOT = HUB.parent.parent
FOLDERS = ("apex_lessons", "notebooks")
FILES = ("CITATION.cff", "LICENSE", "environment.yml", "pyproject.toml",
         "requirements.lock", ".gitignore")
README = "README-students.md"  # the beginning of theirs; these sections follow:
SECTIONS = ("Pages", "What does my own model's config do?",
            "What happens past the trained length?", "Other machines",
            "Another build of torch, and GPUs", "Citing")
# Commands that need what stays here: the tests, the masters.
TARGETS = ("test", "test-slow", "notebooks", "lint", "assignments", "grade", "bench",
           "lock")
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*")
ON_A_HUB = ("nbgitpuller", "nbgrader")  # what an image needs on top of environment.yml


def write(out: Path) -> list[str]:
    """Write the repository; returns the assignments' names."""
    out = out.resolve()
    if out == ROOT or ROOT in out.parents:
        raise ValueError(f"{out} lies in the course's own folder, which holds the"
                         " answers. Name a folder elsewhere, such as ~/apex-class")
    out.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        renew(ROOT / name, out / name)
    for name in FILES:
        shutil.copyfile(ROOT / name, out / name)
    renew(HUB, out / "hub")
    for name in (Path(__file__).name, "README.md", README):
        (out / "hub" / name).unlink()  # for those who have the masters
    (out / "README.md").write_text(students_readme(), encoding="utf-8")
    (out / "Makefile").write_text(students_makefile(), encoding="utf-8")
    (out / "environment.yml").write_text(environment_of_a_hub(), encoding="utf-8")
    return students_copies(out / "assignments")


def renew(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=LEFT_OUT)


def students_readme() -> str:
    """What students need of the course's README, behind a beginning of their own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    parts = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    lines = (HUB / README).read_text(encoding="utf-8").splitlines()
    for name in SECTIONS:
        lines += [f"## {name}", *parts[name].rstrip().splitlines(), ""]
    tests = re.compile(r"make test\b|course_tests\.py")
    return "\n".join(line for line in lines if not tests.search(line))


def students_makefile() -> str:
    """The Makefile without the commands of teachers and contributors."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in TARGETS:
        text = re.sub(rf"^{name}:.*\n(\t.*\n)*\n", "", text, flags=re.MULTILINE)
        text = re.sub(rf"^(\.PHONY:.*) {name}(?= |$)", r"\1", text, flags=re.MULTILINE)
    return re.sub(r'(?m)^(\t@echo )"BROWSER=.*$', r'\1"README.md says more."', text)


def students_copies(target: Path) -> list[str]:
    """Write ``<target>/<name>/<name>.ipynb`` for every assignment."""
    sys.path.insert(0, str(ROOT))
    from apex_lessons.grading.copies import assignment_folders, make_copies

    names = []
    for folder in assignment_folders(HUB.parent):
        with tempfile.TemporaryDirectory() as made:
            copy = make_copies(folder, Path(made), run=False)["student"]
            renew(copy.parent, target / folder.name)
        names.append(folder.name)
    return names


def environment_of_a_hub() -> str:
    """environment.yml with the packages that students need on a hub."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = project["project"]["optional-dependencies"]["classroom"]
    lines = "".join(f'      - "{one.partition(";")[0].strip()}"\n' for one in wanted
                    if one.startswith(ON_A_HUB))
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    return text.replace('      - "-e ."\n', f'{lines}      - "-e ."\n')


def pull_link(hub: str, repository: str, page: str, branch: str = "main") -> str:
    """nbgitpuller's link: log in, fetch or renew the repository, open ``page``.

    >>> link = pull_link("https://hub.org", "https://git.org/apex-class", "README.md")
    >>> link.partition("?")[0]
    'https://hub.org/hub/user-redirect/git-pull'
    >>> link.partition("&targetpath=")[2]
    'apex-class&urlpath=lab%2Ftree%2Fapex-class%2FREADME.md'
    """
    folder = repository.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?" + urlencode({
        "repo": repository, "branch": branch, "targetpath": folder,
        "urlpath": f"lab/tree/{folder}/{page}"})


def main(words: list[str]) -> int:
    if len(words) == 4 and words[0] == "link":
        print(pull_link(*words[1:]))
        return 0
    if len(words) != 1:
        print(__doc__ + "\nclass_repository.py link HUB REPOSITORY PAGE prints the link"
              " that students follow.", file=sys.stderr)
        return 2
    try:
        names = write(Path(words[0]).expanduser())
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{words[0]}: the pages and the assignments {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
