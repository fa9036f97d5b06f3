"""Data cards of Combine in Python: what the page says runs, cards are joined, provenance says how
they were read.
"""

import re

import nextstat
import pytest

CARDS = "examples/combine"
STRENGTHS = ["map=.*/ggH.*:r_ggH[1,0,10]", "map=.*/qqH.*:r_qqH[1,0,10]"]
READING = {"mass", "physics_model", "model_options", "keywords"}


def _rows(root):
    page = (root / "docs/tutorials/coming-from-combine.md").read_text("utf-8")
    table = page.split("| Combine | Command | Python |\n")[1].split("\n\n")[0]
    cells = [re.findall(r"`([^`]+)`", row.split(" | ")[2]) for row in table.splitlines()[1:]]
    return [code for row in cells for code in row]


def test_arguments_of_the_page_run(root, monkeypatch):
    monkeypatch.chdir(root / CARDS)
    rows = _rows(root)
    assert len(rows) == 15
    for code in rows:
        if code.startswith("nextstat."):
            assert eval(code, {"nextstat": nextstat}).workspace["channels"]
            continue
        card = "productions.txt" if "ggH" in code else "counting.txt"
        strengths = {"physics_model": "multiSignalModel", "model_options": STRENGTHS} if "r_ggH" in code else {}
        names = {"nextstat": nextstat, "model": nextstat.load_workspace(card, **strengths)}
        given = eval(f"dict({code})", names)
        reading = strengths | {name: value for name, value in given.items() if name in READING}
        model = nextstat.load_workspace(card, **reading)
        asked = {name: value for name, value in given.items() if name not in READING}
        assert nextstat.fit(model, **asked).converged, code


def test_cards_are_joined(root):
    card = root / CARDS / "counting.txt"
    made = nextstat.combine({"x": card, "y": card}, mass=125)
    assert nextstat.model_of(made.workspace).channels == ["x_high", "x_low", "y_high", "y_low"]
    assert made.to_dict()["provenance"]["card"] == {"mass": 125.0}
    assert nextstat.model_of(nextstat.combine([card, card]).workspace).channels[0] == "ch1_high"
    with pytest.raises(nextstat.ParameterError, match="`join` is for other workspaces"):
        nextstat.combine([card, card], join="outer")
    with pytest.raises(nextstat.WorkspaceError, match="`1` cannot be the label of a card"):
        nextstat.combine({"1": card})


def test_all_strengths_of_a_model_are_of_interest(root):
    card = root / CARDS / "productions.txt"
    model = nextstat.load_workspace(card, mass=125, physics_model="multiSignalModel", model_options=STRENGTHS)
    assert model.pois == ["r_ggH", "r_qqH"]
    fit = nextstat.fit(model)
    assert fit.to_dict()["provenance"]["workspace"]["card"] == {
        "mass": 125.0,
        "physics_model": "multiSignalModel",
        "model_options": STRENGTHS,
    }
    ranking = nextstat.ranking(nextstat.load_workspace(card), groups="background").to_dict()
    assert [group["group"] for group in ranking["groups"]] == ["background"]
    assert ranking["groups"][0]["members"] == ["bkg_incl", "bkg_dijet"]


def test_options_of_cards_are_checked(root):
    card = root / CARDS / "counting.txt"
    with pytest.raises(TypeError, match="`keywords` is a dictionary"):
        nextstat.load_workspace(card, keywords=["A=B"])
    with pytest.raises(nextstat.ParameterError, match="`mass` is nan"):
        nextstat.load_workspace(card, mass=float("nan"))
