"""Sampled pieces: the same text, the same draw for the same place, and groups within limits."""

import itertools
import math
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
import torch
from test_vocab import KINDS, Kind, sentences

from nmt.config import VocabConfig
from nmt.data.shards import Ints
from nmt.tokens.batches import Batch, shift
from nmt.tokens.sampling import PairSampler, PieceSampler
from nmt.tokens.store import TokenStore, make_rows, write_store
from nmt.tokens.vocab import PAD, STOP, UNK, Vocab, Vocabs, train_vocab

Pieces = tuple[str, ...]

NUM = 300
SYMBOLS = ("<2de>", "handelsmarine", "[N]")


def trained(kind: Kind, *, byte_fallback: bool = True) -> Vocab:
    size = 500 if byte_fallback else 240
    config = VocabConfig(type=kind, size=size, byte_fallback=byte_fallback, user_symbols=SYMBOLS)
    return train_vocab(sentences(400), config)


@pytest.fixture(scope="module", params=KINDS)
def vocab(request: pytest.FixtureRequest) -> Vocab:
    return trained(request.param)


def tricky() -> list[str]:
    """Return sentences, some with symbols, bytes, letters beyond the vocabulary, blanks alone."""
    texts = sentences(NUM)
    odd = ["", "a", "[N]", "<2de> der x[N]s <2de>", "漢字 und 😀 der 漢", "handelsmarine 漢[N]漢"]
    mixed = [f"{text} {odd[index % 6]} {text}".strip() for index, text in enumerate(texts)]
    return [*odd, *mixed[len(odd) :]]


def make_store(folder: Path, vocab: Vocab, src: list[str], tgt: list[str]) -> TokenStore:
    numbers = pa.array(range(len(src)), pa.int64())
    with write_store(folder / "train.arrow") as writer:
        writer.write(make_rows(vocab.encode(src), vocab.encode(tgt), 0, numbers))
    return TokenStore(folder / "train.arrow")


@pytest.fixture(scope="module")
def store(vocab: Vocab, tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    folder = tmp_path_factory.mktemp("store")
    return make_store(folder, vocab, tricky(), tricky()[::-1])


def sampler(
    vocab: Vocab,
    store: TokenStore,
    *,
    alpha: float = 0.2,
    seed: int = 1,
    max_length: int = 10_000,
    max_padded: int = 10_000_000,
) -> PairSampler:
    return PairSampler(
        store,
        Vocabs(vocab, vocab),
        alpha=alpha,
        seed=seed,
        max_length=max_length,
        max_padded=max_padded,
    )


def pairs_of(batches: list[Batch]) -> list[tuple[list[int], list[int]]]:
    """Return the ids of each pair, sorted, as a group that is cut has another order."""
    return sorted(
        (unpad(src), unpad(tgt))
        for batch in batches
        for src, tgt in zip(batch.src_BS, batch.tgt_out_BT, strict=True)
    )


def unpad(ids: torch.Tensor) -> list[int]:
    return [piece_id for piece_id in ids.tolist() if piece_id != PAD]


def stored_pairs(store: TokenStore, rows: Ints) -> list[tuple[list[int], list[int]]]:
    return sorted(zip(store.lists("src", rows), store.lists("tgt", rows), strict=True))


def shape_of(batches: list[Batch]) -> list[tuple[int, int]]:
    """Return the number of pairs of each batch and its longest side."""
    return [
        (len(batch.src_BS), max(batch.src_BS.shape[1], batch.tgt_out_BT.shape[1]))
        for batch in batches
    ]


def same(one: list[Batch], other: list[Batch]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(ours, theirs)
        for left, right in zip(one, other, strict=True)
        for ours, theirs in zip(left, right, strict=True)
    )


ALL = np.arange(NUM)


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_the_text_and_the_stop_token_stay_and_the_pieces_change(
    vocab: Vocab, store: TokenStore, alpha: float
) -> None:
    pieces = PieceSampler(vocab, alpha)
    for side in ("src", "tgt"):
        stored = store.lists(side, ALL)
        sampled = [pieces.sample(ids, Random(seed)) for seed, ids in enumerate(stored)]
        assert vocab.decode(sampled) == vocab.decode(stored)
        assert all(ids[-1] == STOP and ids.count(STOP) == 1 for ids in sampled)
        changed = sum(ours != best for ours, best in zip(sampled, stored, strict=True))
        assert changed > 0.9 * NUM
        assert sum(map(len, sampled)) > 1.05 * sum(map(len, stored))


@pytest.mark.parametrize("kind", KINDS)
def test_symbols_bytes_and_unknowns_stay_as_they_are(kind: Kind) -> None:
    """SentencePiece itself splits a symbol when it samples a unigram lattice."""
    for byte_fallback in (True, False):
        vocab = trained(kind, byte_fallback=byte_fallback)
        pieces = PieceSampler(vocab, 0.3)
        fixed = [*range(4 + len(SYMBOLS) + 256 * byte_fallback)]
        [ids] = vocab.encode(["handelsmarine <2de> 漢 der [N]der 漢漢 marine handelsmarine"])
        assert (UNK in ids) != byte_fallback
        kept = [piece_id for piece_id in ids if piece_id in fixed]
        draws = [pieces.sample(ids, Random(seed)) for seed in range(50)]
        for draw in draws:
            assert [piece_id for piece_id in draw if piece_id in fixed] == kept
        assert len(set(map(tuple, draws))) > 5


@pytest.mark.parametrize("form", ["{}[N]", "[N]{}", "漢{}", "{}漢"])
def test_letters_around_what_stays_are_sampled(vocab: Vocab, form: str) -> None:
    word = sentences(1)[0].replace(" ", "")
    [ids] = vocab.encode([form.format(word)])
    pieces = PieceSampler(vocab, 0.2)
    draws = [pieces.sample(ids, Random(seed)) for seed in range(20)]
    assert len(set(map(tuple, draws))) > 2
    assert set(vocab.decode(draws)) == {form.format(word)}


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_lacks_a_letter_of_its_pieces_keeps_the_text(
    kind: Kind, byte_fallback: bool
) -> None:
    whole = trained(kind, byte_fallback=byte_fallback)
    letter, other = (bytes([0x0A, 2]) + char.encode() for char in "äÿ")
    assert whole.model.count(letter) == 1
    vocab = Vocab(whole.model.replace(letter, other), "changed")
    stored = [ids for ids in vocab.encode(sentences(NUM)) if UNK not in ids]
    pieces = PieceSampler(vocab, 0.3)
    sampled = [pieces.sample(ids, Random(seed)) for seed, ids in enumerate(stored)]
    assert len(stored) > 10
    assert vocab.decode(sampled) == vocab.decode(stored)
    assert not any(UNK in ids for ids in sampled)


def lattice_twin(word: str, scores: dict[str, float], alpha: float) -> dict[Pieces, float]:
    """Return the probability of every segmentation of a word, all written out."""
    weights: dict[Pieces, float] = {}
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        places = [0, *(place for place, is_cut in enumerate(cuts, 1) if is_cut), len(word)]
        pieces = tuple(word[start:end] for start, end in itertools.pairwise(places))
        if all(piece in scores for piece in pieces):
            weights[pieces] = math.exp(alpha * sum(scores[piece] for piece in pieces))
    return {pieces: weight / sum(weights.values()) for pieces, weight in weights.items()}


def dropout_twin(symbols: Pieces, scores: dict[str, float], alpha: float) -> dict[Pieces, float]:
    """Return the probability of every result of BPE-dropout, by every draw there is."""
    merged = [symbols[i] + symbols[i + 1] for i in range(len(symbols) - 1)]
    possible = sorted((-scores[piece], i) for i, piece in enumerate(merged) if piece in scores)
    found = {symbols: alpha ** len(possible)}
    for number, (_, place) in enumerate(possible):
        rest = (*symbols[:place], merged[place], *symbols[place + 2 :])
        for pieces, probability in dropout_twin(rest, scores, alpha).items():
            share = alpha**number * (1 - alpha) * probability
            found[pieces] = found.setdefault(pieces, 0) + share
    return found


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_drawn_as_often_as_their_twin_says(kind: Kind, alpha: float) -> None:
    vocab, num = trained(kind), 3000
    scores, sampler = vocab.scores(), PieceSampler(vocab, alpha)
    words = sorted({word for text in sentences(5) for word in text.split() if len(word) == 6})
    for word in words[:3]:
        spelt = f"▁{word}"
        if kind == "bpe":
            expected = dropout_twin(tuple(spelt), scores, alpha)
        else:
            expected = lattice_twin(spelt, scores, alpha)
        [[*ids, _]] = vocab.encode([word])
        draws = (sampler.sample(ids, Random(seed)) for seed in range(num))
        counts = Counter(tuple(vocab.pieces(draw)) for draw in draws)
        assert counts.keys() <= expected.keys()
        assert len(expected) > 5
        assert sum(expected.values()) == pytest.approx(1)
        for pieces, probability in expected.items():
            error = math.sqrt(num * probability * (1 - probability))
            assert abs(counts[pieces] - num * probability) < 5 * error + 1


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 1e-12), ("unigram", 1e4)])
def test_what_samples_nothing_gives_the_pieces_of_sentencepiece(kind: Kind, alpha: float) -> None:
    """Whole texts, which SentencePiece has cut and we cut word by word."""
    vocab = trained(kind)
    pieces, scores = PieceSampler(vocab, alpha), vocab.scores()
    num_equal = 0
    for stored in vocab.encode(tricky()):
        drawn = pieces.sample(stored, Random(1))
        num_equal += drawn == stored
        if kind == "unigram":  # two segmentations may be equally likely, up to rounding
            best, ours = (
                sum(scores[piece] for piece in vocab.pieces(ids) if piece in scores)
                for ids in (stored, drawn)
            )
            assert ours == pytest.approx(best, abs=1e-3)
    assert num_equal >= (NUM if kind == "bpe" else 0.98 * NUM)


def test_a_bpe_that_drops_every_merge_leaves_letters() -> None:
    vocab = trained("bpe")
    [ids] = vocab.encode(sentences(1))
    letters = vocab.pieces(PieceSampler(vocab, 1.0).sample(ids, Random(1)))
    assert letters[:-1] == list("▁" + sentences(1)[0].replace(" ", "▁"))


def test_a_group_is_drawn_alike_whenever_it_is_asked_for(vocab: Vocab, store: TokenStore) -> None:
    rows = np.array([200, 17, 4, 99, 17])
    draw = sampler(vocab, store)
    first = draw.batches(rows, epoch=3, step=5)
    draw.batches(ALL, epoch=0, step=0)
    assert same(draw.batches(rows, epoch=3, step=5), first)
    assert same(sampler(vocab, store).batches(rows, epoch=3, step=5), first)


def test_another_epoch_update_or_seed_draws_anew(vocab: Vocab, store: TokenStore) -> None:
    rows = np.arange(100, 120)
    draw, other = sampler(vocab, store), sampler(vocab, store, seed=2)
    drawn = [
        pairs_of(draw.batches(rows, epoch=0, step=0)),
        pairs_of(draw.batches(rows, epoch=1, step=0)),
        pairs_of(draw.batches(rows, epoch=0, step=1)),
        pairs_of(other.batches(rows, epoch=0, step=0)),
    ]
    for index, pairs in enumerate(drawn):
        assert all(pairs != others for others in drawn[:index])


def test_a_pair_is_drawn_alike_in_whatever_group_it_stands(vocab: Vocab, store: TokenStore) -> None:
    draw = sampler(vocab, store)
    together = pairs_of(draw.batches(ALL, epoch=1, step=2))
    parts = [draw.batches(rows, epoch=1, step=2) for rows in np.split(ALL, [7, 40, 41, 250])]
    assert sorted(pair for part in parts for pair in pairs_of(part)) == together


def test_the_two_sides_are_drawn_apart(vocab: Vocab, tmp_path: Path) -> None:
    store = make_store(tmp_path, vocab, sentences(50), sentences(50))
    [batch] = sampler(vocab, store).batches(np.arange(50), epoch=0, step=0)
    assert sum(src != tgt for src, tgt in pairs_of([batch])) > 40


def test_a_batch_holds_its_pairs_and_what_the_decoder_reads(
    vocab: Vocab, store: TokenStore
) -> None:
    [batch] = sampler(vocab, store).batches(ALL, epoch=0, step=0)
    texts = [
        sorted(zip(*(vocab.decode(side) for side in zip(*pairs, strict=True)), strict=True))
        for pairs in (pairs_of([batch]), stored_pairs(store, ALL))
    ]
    assert texts[0] == texts[1]
    assert all(
        torch.equal(*sides) for sides in zip(shift(batch.tgt_out_BT), batch[1:], strict=True)
    )
    assert {ids.dtype for ids in batch} == {torch.int64}


def test_a_group_that_outgrows_its_limit_is_cut(vocab: Vocab, store: TokenStore) -> None:
    longest = max(int(store.lengths(side).max()) for side in ("src", "tgt"))
    limit = NUM * longest  # what the planner would let through, to the last token
    num_parts = []
    for alpha in (0.02, 0.2, 1.0):  # small for a lattice, large for merges
        draw = sampler(vocab, store, alpha=alpha, max_padded=limit, max_length=limit)
        groups = draw.batches(ALL, epoch=0, step=0)
        assert all(num * length <= limit for num, length in shape_of(groups))
        free = sampler(vocab, store, alpha=alpha).batches(ALL, epoch=0, step=0)
        assert pairs_of(groups) == pairs_of(free)
        num_parts.append(len(groups))
    assert max(num_parts) > 1


def test_a_pair_that_outgrows_a_limit_keeps_its_pieces(vocab: Vocab, store: TokenStore) -> None:
    rows = np.arange(100, 200)
    longest = max(int(store.lengths(side)[rows].max()) for side in ("src", "tgt"))
    draw = sampler(vocab, store, alpha=0.3, max_padded=longest, max_length=longest)
    groups = draw.batches(rows, epoch=0, step=0)
    assert all(num * length <= longest for num, length in shape_of(groups))
    free = pairs_of(sampler(vocab, store, alpha=0.3).batches(rows, epoch=0, step=0))
    drawn, stored = pairs_of(groups), stored_pairs(store, rows)
    assert sum(len(src) <= longest >= len(tgt) for src, tgt in free) < 100
    for pair in drawn:
        assert pair in free or pair in stored
    assert any(pair in stored and pair not in free for pair in drawn)
    fits = [pair for pair in free if max(map(len, pair)) <= longest]
    assert all(pair in drawn for pair in fits)
