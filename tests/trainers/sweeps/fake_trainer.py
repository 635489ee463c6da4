"""A command in place of a trainer: it counts steps, saves them and resumes.

Its flags: `pause`, seconds of a step; `waits`, the path of a file without which
the second step does not end; `fails`, the exit status in place of results.
"""

import fcntl
import json
import os
import pathlib
import signal
import sys
import time


def main(arguments):
    flags = dict(text[2:].split("=", 1) for text in arguments)
    workdir = pathlib.Path(flags["workdir"])
    workdir.mkdir(parents=True, exist_ok=True)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))

    lock = (workdir / "run.lock").open("a+")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (workdir / "starts").open("a") as file:
        file.write("start\n")
    saved = workdir / "step"
    first = int(saved.read_text()) if saved.exists() else 0
    for step in range(first + 1, 6):
        time.sleep(float(flags.get("pause", 0.05)))
        while (
            step > 1 and "waits" in flags and not os.path.exists(flags["waits"])
        ):
            time.sleep(0.05)
        saved.write_text(str(step))
        with (workdir / "steps").open("a") as file:
            file.write(f"{step}\n")
        (workdir / "metrics.csv").write_text(
            "step,seconds,metric,length,value\n"
            f"1,0.5,loss,,1\n{step},{step},,,\n"
        )
        if stopped:
            print("saved")
            return 143
    if "fails" in flags and not (workdir / "mended").exists():
        print("this went wrong")
        return int(flags["fails"])
    (workdir / "results.json").write_text(json.dumps({"flags": flags}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
