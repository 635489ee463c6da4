import sys

from trainers.records.progress import Line, Progress, Table


def test_a_log_gets_lines_now_and_then(capsys):
    line = Line(log_every=1000)
    for number in range(5):
        line.show(f"step {number}", last=number == 4)
    assert capsys.readouterr().out == "step 0\nstep 4\n"


def test_a_terminal_gets_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    line = Line()
    line.show("step 1")
    line.show("step 2", last=True)
    assert capsys.readouterr().out == "\r\033[Kstep 1\r\033[Kstep 2\n"


def test_progress_of_a_resumed_run(capsys):
    progress = Progress("run", steps=100)
    progress.on_train_begin({"step": 40, "seconds": 10.0})
    progress.on_train_batch_end(60, {"loss": 0.25, "seconds": 20.0})
    assert capsys.readouterr().out.splitlines() == [
        "run: resuming after step 40",
        "run: step 60/100, loss 0.2500, 2.0 steps/s, 0:20 left",
    ]


def test_table_is_rewritten_on_a_terminal_only(monkeypatch, capsys):
    table = Table()
    table.show(["hidden"])
    table.add("seen")
    assert capsys.readouterr().out == "seen\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    table = Table()
    table.show(["one", "two" * 20])
    table.add("above")
    table.show(["three"])
    assert capsys.readouterr().out == (
        "one\n" + ("two" * 20)[:19] + "\n\033[2F\033[Jabove\nthree\n"
    )
