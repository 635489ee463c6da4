import pytest

from colab.helpers import commands

PROGRAM = """
import sys

print("flags")
print("  steps = 3")
print("loss 0.5")
print(*sys.argv[1:])
sys.exit(int(sys.argv[-1]))
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    return "program --prompt='1 + 2' 0"


@pytest.mark.process
def test_a_command_shows_its_output_without_the_flags(program, capfd):
    assert commands.run(program) is None
    assert capfd.readouterr().out.splitlines() == [
        "$ python -m program --prompt='1 + 2' 0",
        "flags",
        "loss 0.5",
        "--prompt=1 + 2 0",
    ]


@pytest.mark.process
def test_the_last_line_is_returned(program):
    assert commands.run_and_read(program) == "--prompt=1 + 2 0"


@pytest.mark.process
def test_a_command_that_fails_stops_the_notebook(program):
    with pytest.raises(RuntimeError, match="exit status 3"):
        commands.run("program 3")
