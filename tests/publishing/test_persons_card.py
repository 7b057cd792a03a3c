"""What a person wrote into a card stays, whatever is published next."""

from pathlib import Path

import pytest

from stscurate.publishing import publish_folder
from stscurate.publishing.card import check_card, read_front_matter
from stscurate.store import Run
from tests.publishing.hubs import Killed
from tests.publishing.samples import pair, write_pairs


def test_what_a_person_wrote_into_the_card_stays_when_the_set_is_made_anew(card: str, tmp_path: Path) -> None:
    path = tmp_path / "set" / "README.md"
    edited = card.replace("license: cc-by-4.0\n", "license: cc-by-4.0  # asked the authors\nviewer: false\n")
    edited = edited.replace("<!-- stscurate: begin limits", "## Thanks\n\nTo all.\n<!-- stscurate: begin limits")
    path.write_bytes(edited.replace("\n", "\r\n").encode())
    with Run.open(tmp_path / "demo") as run:
        publish_folder(run, tmp_path / "set", licence="mit", language=["en", "no"], replace=True)
    expected = edited.replace("license: cc-by-4.0  # asked the authors\n", "# asked the authors\nlicense: mit\n")
    expected = expected.replace("--licence cc-by-4.0", "--licence mit").replace("under: cc-by-4.0", "under: mit")
    assert path.read_bytes() == expected.replace("\n", "\r\n").encode()
    check_card(tmp_path / "set")


@pytest.mark.parametrize("next_licence", ["cc0-1.0", "mit"])
def test_a_persons_words_outlive_a_kill_between_the_two_renames_whatever_is_published_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, next_licence: str
) -> None:
    place = tmp_path / "set" / "README.md"
    true_rename = Path.rename

    def deadly(self: Path, target: Path) -> Path:
        if target == tmp_path / "set" and self.name == "result":
            raise Killed
        return true_rename(self, target)

    with Run.open(tmp_path / "run") as run:
        write_pairs(run, [pair("p", "a", "b", label=1)])
        publish_folder(run, tmp_path / "set", licence="apache-2.0")
        place.write_text("".join([place.read_text(), "\nWords of a person.\n"]))
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", deadly)
            with pytest.raises(Killed):
                publish_folder(run, tmp_path / "set", licence="mit", replace=True)
        assert not place.exists()
        publish_folder(run, tmp_path / "set", licence=next_licence, replace=True)
    assert place.read_text().endswith("\nWords of a person.\n")
    assert read_front_matter(place.read_text())["license"] == next_licence
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "set"]


def test_a_config_that_a_person_added_to_the_card_stays_and_is_not_held_to_our_files(card: str, tmp_path: Path) -> None:
    path = tmp_path / "set" / "README.md"
    path.write_text(card.replace("configs:\n", "configs:\n- config_name: mine\n  data_files: mine.csv\n", 1))
    with Run.open(tmp_path / "demo") as run:
        publish_folder(run, tmp_path / "set", licence="mit", language=["en"], replace=True)
    configs = read_front_matter(path.read_text())["configs"]
    assert [config["config_name"] for config in configs][:2] == ["mine", "pairs"]
    assert configs[0] == {"config_name": "mine", "data_files": "mine.csv"}
