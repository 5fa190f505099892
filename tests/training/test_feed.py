"""The batches of a run: a pure function of its folder and of the place in it, in any process."""

import hashlib
import multiprocessing
import os
import random
from collections.abc import Iterator

import pytest
from prepared import prepare_small, write_small

from nmt.config import load_config
from nmt.run_folder import RunFolder
from nmt.tokens.batches import Batch, make_batch
from nmt.tokens.store import TokenStore
from nmt.tokens.vocab import PAD, load_vocabs
from nmt.training.checkpoint import Progress
from nmt.training.feed import Feed

LIMIT = 80
KEYS = ("training.batch_tokens=200", f"training.group_tokens={LIMIT}")
BEST, SAMPLED = "training.subword_alpha=0", "training.subword_alpha=0.3"
NUM_PROCESSES = 8

Ids = tuple[int, ...]


def some_pairs(num_pairs: int) -> list[tuple[str, str]]:
    """Return sentences of made-up words, enough of them for pieces of many lengths."""
    rng = random.Random(4)
    words = ["".join(rng.choices("abdegilmnorst", k=rng.randint(3, 7))) for _ in range(300)]
    texts = [" ".join(rng.choices(words, k=rng.randint(3, 6))) for _ in range(2 * num_pairs)]
    return list(zip(texts[::2], texts[1::2], strict=True))


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    config = write_small(tmp_path_factory.mktemp("feed"), some_pairs(150))
    return prepare_small(config, *KEYS, f"vocab={{type: {request.param}, size: 120}}")[0]


def feed_of(run: RunFolder, *overrides: str) -> Feed:
    """Return the feed of a run under other keys of training."""
    config = load_config(run.config_file, overrides)
    return Feed(config, run, load_vocabs(config, run))


def places(feed: Feed, num_epochs: int = 2) -> list[Progress]:
    """Return where a run stands before each of its updates."""
    return [
        Progress(epoch=epoch, epoch_step=step)
        for epoch in range(num_epochs)
        for step in range(len(feed.epoch(epoch)))
    ]


def digest(batches: list[Batch]) -> str:
    """Return a hash of the shapes and bytes of all tensors."""
    found = hashlib.sha256()
    for batch in batches:
        for ids in batch:
            found.update(f"{ids.dtype} {tuple(ids.shape)}".encode() + ids.numpy().tobytes())
    return found.hexdigest()


def pairs_of(batches: list[Batch]) -> Iterator[tuple[Ids, Ids]]:
    """Yield the ids of each pair, without padding."""
    for batch in batches:
        for pair in zip(batch.src_BS.tolist(), batch.tgt_out_BT.tolist(), strict=True):
            src, tgt = (tuple(piece for piece in side if piece != PAD) for side in pair)
            yield src, tgt


def by_text(run: RunFolder, batches: list[Batch]) -> dict[tuple[str, ...], tuple[Ids, Ids]]:
    """Return the ids of each pair under its texts."""
    vocab = load_vocabs(run.load_config(), run).src
    return {tuple(vocab.decode(pair)): pair for pair in pairs_of(batches)}


def epoch_of(run: RunFolder, feed: Feed, epoch: int) -> dict[tuple[str, ...], tuple[Ids, Ids]]:
    updates = (feed.next_update(place) for place in places(feed) if place.epoch == epoch)
    return by_text(run, [batch for update in updates for batch in update])


def share(run: RunFolder, first: int, every: int) -> tuple[int, list[list[str]]]:
    """Return this process and the hashes of its updates in two epochs, without and with sampling.

    Its updates are `first` and every so many after it.
    """
    feeds = [feed_of(run, key) for key in (BEST, SAMPLED)]
    return os.getpid(), [
        [digest(feed.next_update(place)) for place in places(feed)[first::every]] for feed in feeds
    ]


def test_one_process_and_eight_give_the_same_bytes(run: RunFolder) -> None:
    """The eight are forked from a server that has loaded our modules, but no run."""
    _, whole = share(run, 0, 1)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["nmt.prepare", "nmt.training.feed"])
    tasks = [(run, first, NUM_PROCESSES) for first in range(NUM_PROCESSES)]
    with context.Pool(NUM_PROCESSES, maxtasksperchild=1) as pool:
        shares = pool.starmap(share, tasks, chunksize=1)
    assert len({process for process, _ in shares} | {os.getpid()}) == NUM_PROCESSES + 1
    for first, (_, found) in enumerate(shares):
        assert found == [updates[first::NUM_PROCESSES] for updates in whole]
    assert len(set(whole[0] + whole[1])) == len(whole[0] + whole[1])


@pytest.mark.parametrize("key", [BEST, SAMPLED])
def test_going_on_anywhere_gives_the_batches_of_the_whole_run(run: RunFolder, key: str) -> None:
    feed, progress = feed_of(run, key), Progress()
    num_updates = len(places(feed))
    whole = [digest(feed.next_update(progress)) for _ in range(num_updates)]
    assert (progress.epoch, progress.epoch_step) == (2, 0)
    for start in (3, len(feed.epoch(0)), num_updates - 1):
        later, progress = feed_of(run, key), places(feed)[start]
        rest = [digest(later.next_update(progress)) for _ in whole[start:]]
        assert rest == whole[start:]
    assert [digest(feed.next_update(place)) for place in places(feed)[::-1]] == whole[::-1]


@pytest.mark.parametrize("key", [BEST, SAMPLED])
def test_working_ahead_hands_out_the_same_at_the_same_places(
    run: RunFolder, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position is that of the update handed out, whatever else is made; so is its text."""
    monkeypatch.setattr(Batch, "pin", lambda batch: batch)  # which a machine without GPU cannot
    plain, ahead = feed_of(run, key), feed_of(run, key)
    ahead.work_ahead()
    one, other = Progress(), Progress()
    for _ in range(len(places(plain))):
        assert digest(ahead.next_update(other)) == digest(plain.next_update(one))
        assert other == one
        assert [*ahead.describe_update()] == [*plain.describe_update()]
    backwards = places(plain)[::-1]
    expected = [digest(plain.next_update(place)) for place in backwards]
    assert [digest(ahead.next_update(place)) for place in places(ahead)[::-1]] == expected


def test_without_sampling_a_batch_is_what_the_store_holds(run: RunFolder) -> None:
    feed, store = feed_of(run, BEST), TokenStore(run.store)
    for place in places(feed):
        planned = [make_batch(store, rows) for rows in feed.epoch(place.epoch)[place.epoch_step]]
        assert digest(feed.next_update(place)) == digest(planned)


def test_sampling_keeps_the_pairs_of_an_update_and_the_size_of_a_group(run: RunFolder) -> None:
    best, sampled = feed_of(run, BEST), feed_of(run, SAMPLED)
    num_cut = 0
    for ours, theirs in zip(places(best), places(sampled), strict=True):
        planned, drawn = best.next_update(ours), sampled.next_update(theirs)
        assert by_text(run, planned).keys() == by_text(run, drawn).keys()
        assert len([*pairs_of(planned)]) == len([*pairs_of(drawn)])
        for batch in drawn:
            longest = max(batch.src_BS.shape[1], batch.tgt_out_BT.shape[1])
            assert len(batch.src_BS) * longest <= LIMIT
        num_cut += len(drawn) > len(planned)
    assert num_cut > 0


def test_other_epochs_and_other_seeds_draw_other_pieces(run: RunFolder) -> None:
    feed = feed_of(run, SAMPLED)
    first = epoch_of(run, feed, 0)
    others = [
        epoch_of(run, feed_of(run, BEST), 0),
        epoch_of(run, feed, 1),
        epoch_of(run, feed_of(run, SAMPLED, "training.seed=2"), 0),
    ]
    for other in others:
        assert other.keys() == first.keys()
        assert sum(other[text] != ids for text, ids in first.items()) > 0.7 * len(first)


def test_sampled_pairs_stay_within_learned_positions(run: RunFolder) -> None:
    longest = max(int(TokenStore(run.store).lengths(side).max()) for side in ("src", "tgt"))
    bound = ("model.positions=learned", f"model.max_positions={longest}")
    lengths = []
    for keys in (bound, ()):
        drawn = epoch_of(run, feed_of(run, SAMPLED, *keys), 0)
        lengths.append(max(len(side) for pair in drawn.values() for side in pair))
    assert lengths[0] <= longest < lengths[1]
