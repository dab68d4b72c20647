"""A model as a wheel: what `spacy package` makes is installed, and loads by its name."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv
from functools import partial
from pathlib import Path

import pytest
from trainings import sampling_training

SHOWN = (
    "import spacy; nlp = spacy.load('xx_ud_synthetic'); doc = nlp('the owl sees a mouse .'); "
    "print(nlp.meta['version'], nlp.pipe_names, all(t.dep_ for t in doc))"
)


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """What a command says that ends with a code; cwd: not the checkout, which `-m` would import."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def builds_wheels() -> bool:
    """Whether the setuptools that are here make wheels by themselves."""
    try:
        return importlib.util.find_spec("setuptools.command.bdist_wheel") is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(
    "TK_SPACY_TEST_INSTALLED" not in os.environ, reason="asks for an installed package"
)
def test_spacy_package_of_a_model_is_installed_beside_tk_spacy(tmp_path: Path) -> None:
    python, run_here = Path(sys.executable), partial(run, cwd=tmp_path)
    run_here(python, "-m", "spacy", "package", sampling_training()[0], tmp_path, "--build", "none")
    how = ["--no-build-isolation"] if builds_wheels() else []
    folder = tmp_path / "xx_ud_synthetic-0.1.0"
    run_here(python, "-m", "pip", "wheel", "--no-deps", *how, "-w", tmp_path, folder)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    fresh = tmp_path / "venv" / "bin" / "python"
    install = [fresh, "-m", "pip", "install", "--no-index", wheel]
    # It asks for tk-spacy, which has to be there.
    assert "No matching distribution found for tk-spacy" in run_here(*install, code=1)
    own = sysconfig.get_paths(vars={"base": str(tmp_path / "venv")})["purelib"]
    here = sysconfig.get_paths()["purelib"]
    Path(own, "here.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    run_here(*install)
    assert run_here(fresh, "-W", "ignore", "-c", SHOWN).strip() == (
        "0.1.0 ['tk_parser', 'tk_reranker'] True"
    )
