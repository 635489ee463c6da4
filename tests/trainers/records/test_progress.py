from trainers.records.progress import Progress


def test_progress_of_a_resumed_run(capsys):
    progress = Progress("run", steps=100)
    progress.on_train_begin({"step": 40, "seconds": 10.0})
    progress.on_train_batch_end(60, {"loss": 0.25, "seconds": 20.0})
    assert capsys.readouterr().out.splitlines() == [
        "run: resuming after step 40",
        "run: step 60/100, loss 0.2500, 2.0 steps/s, 0:20 left",
    ]
