"""Which licence a model gets, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tk_spacy.treebank.licences import Licence, find_licence, joint_licence, licence_note

BY = Licence("CC BY 4.0", "README.md")
FREE = Licence("Free as air.", "LICENSE.txt")
NONE = Licence()


def test_licence_of_a_treebank_s_folder(tmp_path: Path) -> None:
    def write(name: str, text: str) -> Licence:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return find_licence(tmp_path)

    assert find_licence(tmp_path) == NONE
    found = write("LICENSE.txt", "\nThis work is\nfree.\n\nMore.\n")
    assert found == Licence("This work is free.", "LICENSE.txt")
    linked = (
        "This work is under\na licence: see\n\nhttp://creativecommons.org/licenses/by-nc-sa/3.0/\n"
    )
    assert write("LICENSE.txt", linked).text == "CC BY-NC-SA 3.0"
    found = write("LICENSE.txt", "Free for non-\ncommercial use.")
    assert found.text == "Free for non-commercial use."
    assert write("LICENSE.txt", "w " * 200).text == "w " * 99 + "w ..."
    found = write("README.md", "# T\nLicense: CC BY-SA 4.0\nX: y\n")
    assert found == Licence("CC BY-SA 4.0", "README.md")


@pytest.mark.parametrize(
    ("chosen", "found", "says"),
    [
        ("", {"UD_A": BY}, "CC BY 4.0 (CC BY 4.0 in README.md of UD_A)"),
        (
            "",
            {"UD_A": BY, "UD_B": FREE},
            "CC BY 4.0, Free as air. (CC BY 4.0 in README.md of UD_A and Free as air. in "
            "LICENSE.txt of UD_B)",
        ),
        (
            "",
            {"UD_A": NONE},
            "none, as no README or LICENSE of UD_A states one; give one by --licence",
        ),
        (
            "",
            {"UD_A": NONE, "UD_B": FREE},
            "none, as no README or LICENSE of UD_A states one; Free as air. in LICENSE.txt of "
            "UD_B; give one by --licence",
        ),
        ("MIT", {"UD_A": NONE}, "MIT, as was chosen"),
        ("MIT", {"UD_A": BY}, "MIT, as was chosen; treebank: CC BY 4.0 in README.md of UD_A"),
    ],
)
def test_licence_note(chosen: str, found: dict[str, Licence], says: str) -> None:
    assert licence_note(chosen, found) == f"licence of the model: {says}"
    joint = joint_licence({name: licence.text for name, licence in found.items()})
    assert says.startswith(chosen or joint or "none")
