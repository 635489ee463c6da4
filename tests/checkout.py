"""The checkout, and copies of it for commands that write into it."""

import configparser
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).parents[1]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")


def copy_checkout(directory):
    """Copies what git lists or could add, without what builds left behind."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for path in listed:
        if (ROOT / path).exists():  # not deleted since
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, directory / path)


def make_repository(directory):
    """Makes a repository whose commit has all files of a directory."""
    git = ["git", "-c", "user.name=some", "-c", "user.email=some@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Files"]):
        subprocess.run([*git, *command], cwd=directory, check=True)
