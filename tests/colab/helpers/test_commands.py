"""Commands of notebooks, each a process."""

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


@pytest.mark.process
def test_a_command_shows_its_output_without_the_flags(
    tmp_path, monkeypatch, capfd
):
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    assert commands.run("program --prompt='1 + 2' 0") is None
    assert capfd.readouterr().out.splitlines() == [
        *("$ python -m program --prompt='1 + 2' 0", "flags", "loss 0.5"),
        "--prompt=1 + 2 0",
    ]
    assert commands.run_and_read("program a 0") == "a 0"
    with pytest.raises(RuntimeError, match="exit status 3"):
        commands.run("program 3")
