"""Installs what the notebooks need; imports the standard library alone."""

import configparser
import glob
import importlib
import importlib.metadata
import re
import shutil
import subprocess
import sys


def install_missing():
    """Installs the library with its extras if a package is missing or too old.

    The working directory must be that of the sources. Says so if a package
    was replaced that this process has imported already.
    """
    extras = choose_extras()
    if not extras:
        return
    before = _read_imported_versions()
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run(
        [*pip, "install", "--editable", f".[{','.join(extras)}]"], check=True
    )
    importlib.invalidate_caches()
    after = _read_imported_versions()
    replaced = sorted(
        name for name in before if before[name] != after.get(name)
    )
    if replaced:
        print(
            "Restart the runtime (in Colab: Runtime > Restart session), and "
            "run all cells: new versions were installed of packages that it "
            f"has already imported ({', '.join(replaced)})."
        )


def choose_extras():
    """Returns the extras to install, a list, empty if nothing is missing."""
    extras = ["images", "plots"]
    needed = _read_requirements("images") + _read_requirements("plots")
    needed += _read_requirements(None)
    if not _has_tensorflow():
        extras.append(_choose_tensorflow())
    elif all(map(_is_installed, needed)):
        return []
    return extras


def find_local_tpus():
    """Returns the device files of this machine's TPU chips.

    As `trainers.cluster.strategy` does, which needs TensorFlow.
    """
    return glob.glob("/dev/accel*") + glob.glob("/dev/vfio/[0-9]*")


def _choose_tensorflow():
    """Returns the extra with the TensorFlow for this machine."""
    if find_local_tpus():
        # The extra `tpu` would replace the libtpu of JAX, which then finds no
        # TPU.
        return "tensorflow" if _find_version("libtpu") else "tpu"
    return "gpu" if shutil.which("nvidia-smi") else "tensorflow"


def _has_tensorflow():
    """Whether some TensorFlow is there that is new enough, with TensorBoard."""
    wheel, tensorboard = _read_requirements("tensorflow")
    tpu_wheel, *_ = _read_requirements("tpu")
    cpu_wheel = wheel.replace("tensorflow", "tensorflow-cpu")
    wheels = (wheel, cpu_wheel, tpu_wheel)
    return _is_installed(tensorboard) and any(map(_is_installed, wheels))


def _read_requirements(extra):
    """Returns the lines of setup.cfg for an extra, or `None`: the library."""
    setup = configparser.ConfigParser()
    setup.read("setup.cfg")
    if extra is None:
        lines = setup["options"]["install_requires"]
    else:
        lines = setup["options.extras_require"][extra]
    return lines.split()


def _is_installed(requirement):
    """Whether a package is there in the version of `name>=1.2`, or later."""
    name, least = re.split("[>=]=", requirement)
    found = _find_version(name)
    return found is not None and _read_numbers(found) >= _read_numbers(least)


def _find_version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _read_numbers(version):
    return [int(digits) for digits in re.findall(r"\d+", version)]


def _read_imported_versions():
    """Returns the versions of the packages that this process has imported."""
    packages = importlib.metadata.packages_distributions()
    return {
        name: _find_version(name)
        for module, names in packages.items()
        if module in sys.modules
        for name in names
    }
