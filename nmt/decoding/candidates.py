"""The best pieces for beams to go on with, found without sorting the vocabulary."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# Tensor names end in their shape: B sentences, W beams, V vocabulary, C candidates, R = B·W rows,
# G groups of pieces, P places in W·V, N any few.

# A power of two, so that groups are compared by halves.
_GROUP_SIZE = 32
# So that the pieces left over are fewer than the groups.
_MIN_PIECES_FOR_GROUPS = _GROUP_SIZE**2
# Below that, all probabilities are soon computed, and fewer operations count for more.
_MIN_ROWS_FOR_GROUPS = 32
# Half a megabyte in fp32 stays in the cache of a core.
_SCORES_AT_ONCE = 1 << 17


class Candidates(NamedTuple):
    """Hypotheses one piece longer, best first: Σ log p, the beam each continues, its new piece."""

    totals_BC: Tensor
    beams_BC: Tensor
    ids_BC: Tensor


def best_candidates(
    totals_BW: Tensor, scores_BWV: Tensor, beam: int, banned_N: Tensor
) -> Candidates:
    """Extend every beam by every piece and return the best, enough to fill the next beam.

    That is `beam` of them and one more for each beam, as its stop token may be among them. Banned
    pieces have no probability. Among equals the lower beam comes first, then the lower id; in a
    large vocabulary any of the equals at the end may be taken.
    """
    num_beams, num_pieces = scores_BWV.shape[1:]
    count = min(beam + num_beams, num_beams * num_pieces)
    if num_pieces < _MIN_PIECES_FOR_GROUPS:
        totals_BP = _extend_by_all(totals_BW, scores_BWV, banned_N)
        totals_BP, places_BP = totals_BP.sort(dim=1, descending=True, stable=True)
        totals_BC, places_BC = totals_BP[:, :count], places_BP[:, :count]
    elif totals_BW.numel() < _MIN_ROWS_FOR_GROUPS:
        totals_BP = _extend_by_all(totals_BW, scores_BWV, banned_N)
        totals_BC, places_BC = _in_order(*_best_places(totals_BP, count))
    else:
        totals_BP, places_BP = _extend_by_groups(totals_BW, scores_BWV, count, banned_N)
        totals_BC, columns_BC = totals_BP.topk(count, sorted=False)
        totals_BC, places_BC = _in_order(totals_BC, places_BP.gather(1, columns_BC))
    beams_BC = places_BC // num_pieces
    return Candidates(totals_BC, beams_BC, places_BC - num_pieces * beams_BC)


def log_sum_exp(scores_RV: Tensor) -> Tensor:
    """Return log Σ exp of scores of any float type, in fp32, shape R.

    On CPUs some rows at a time, so that they are in the cache still when they are summed; and by
    log_softmax, as torch's logsumexp takes 1.6 times as long.
    """
    at_once = len(scores_RV)
    if scores_RV.device.type == "cpu":
        at_once = max(1, _SCORES_AT_ONCE // scores_RV.shape[1])
    parts = []
    for scores_NV in torch.split(scores_RV, at_once):
        scores_NV = scores_NV.float()
        parts.append(scores_NV.amax(1) - scores_NV.log_softmax(1).amax(1))
    return torch.cat(parts)


def _extend_by_all(totals_BW: Tensor, scores_BWV: Tensor, banned_N: Tensor) -> Tensor:
    """Return the totals of every place in W·V."""
    totals_BWV = scores_BWV.log_softmax(2, dtype=torch.float32).add_(totals_BW.unsqueeze(2))
    return totals_BWV.index_fill_(2, banned_N, -torch.inf).flatten(1)


def _best_places(totals_BP: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` best totals and their places, in any order.

    They lie in the `count` groups whose best are the best. torch's topk of all takes 1.6 times as
    long for four beams of 8,000 pieces, and 3 times for 32,000. Group g holds the places g, g + G,
    g + 2·G, ...
    """
    filled_BP = F.pad(totals_BP, (0, -totals_BP.shape[1] % _GROUP_SIZE), value=-torch.inf)
    totals_BNG = filled_BP.view(len(filled_BP), _GROUP_SIZE, -1)
    groups_BC = totals_BNG.amax(1).topk(count, sorted=False).indices
    groups_BNC = groups_BC.unsqueeze(1).expand(-1, _GROUP_SIZE, -1)
    best_BC, columns_BC = totals_BNG.gather(2, groups_BNC).flatten(1).topk(count, sorted=False)
    offsets_BC = columns_BC // count * totals_BNG.shape[2]
    return best_BC, offsets_BC + groups_BC.gather(1, columns_BC % count)


def _extend_by_groups(
    totals_BW: Tensor, scores_BWV: Tensor, count: int, banned_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Return totals and places of pieces among which are the `count` best.

    These lie in the `count` groups whose best pieces are the best.
    """
    num_pieces = scores_BWV.shape[2]
    best_BWG = _best_of_groups(scores_BWV, banned_N)
    num_groups = best_BWG.shape[2]
    # What a score comes to as a part of a total.
    offsets_BW = totals_BW - log_sum_exp(scores_BWV.flatten(0, 1)).view_as(totals_BW)
    best_BP = (best_BWG + offsets_BW.unsqueeze(2)).flatten(1)
    groups_BC = best_BP.topk(count, sorted=False).indices
    beams_BC = groups_BC // num_groups
    ids_BCN, is_hidden_BCN = _pieces_of(groups_BC % num_groups, num_groups, num_pieces, banned_N)
    places_BP = (ids_BCN + beams_BC.unsqueeze(2) * num_pieces).flatten(1)
    scores_BCN = scores_BWV.flatten(1).gather(1, places_BP).view_as(ids_BCN)
    totals_BCN = scores_BCN.float() + offsets_BW.gather(1, beams_BC).unsqueeze(2)
    return totals_BCN.masked_fill_(is_hidden_BCN, -torch.inf).flatten(1), places_BP


def _in_order(totals_BC: Tensor, places_BC: Tensor) -> tuple[Tensor, Tensor]:
    """Return them with the best first and, among equals, the first place first."""
    places_BC, order_BC = places_BC.sort(dim=1)
    totals_BC, order_BC = totals_BC.gather(1, order_BC).sort(dim=1, descending=True, stable=True)
    return totals_BC, places_BC.gather(1, order_BC)


def _best_of_groups(scores_BWV: Tensor, banned_N: Tensor) -> Tensor:
    """Return the best score of each group; group g holds the pieces g, g + G, g + 2·G, ..."""
    num_pieces = scores_BWV.shape[2]
    num_groups = num_pieces // _GROUP_SIZE
    num_whole = num_groups * _GROUP_SIZE
    whole_BWN = scores_BWV[:, :, :num_whole]
    best_BWNG = whole_BWN.view(*whole_BWN.shape[:2], _GROUP_SIZE, num_groups)
    while (half := best_BWNG.shape[2] // 2) > 0:
        best_BWNG = torch.maximum(best_BWNG[:, :, :half], best_BWNG[:, :, half:])
    best_BWG, rest_BWN = best_BWNG.squeeze(2), scores_BWV[:, :, num_whole:]
    head_BWN = best_BWG[:, :, : rest_BWN.shape[2]]
    head_BWN.copy_(torch.maximum(head_BWN, rest_BWN))
    if len(banned_N):
        groups_N = banned_N % num_groups
        ids_NN, is_hidden_NN = _pieces_of(groups_N, num_groups, num_pieces, banned_N)
        scores_BWNN = scores_BWV[:, :, ids_NN].masked_fill_(is_hidden_NN, -torch.inf)
        best_BWG[:, :, groups_N] = scores_BWNN.amax(3)
    return best_BWG


def _pieces_of(
    groups: Tensor, num_groups: int, num_pieces: int, banned_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the ids of the pieces of groups along a new dimension, and which of them not to take.

    A group that is short is filled up with an id that is not to be taken.
    """
    offsets_N = torch.arange(0, num_pieces, num_groups, device=groups.device)
    ids = groups.unsqueeze(-1) + offsets_N
    is_banned = (ids.unsqueeze(-1) == banned_N).any(-1)
    return ids.clamp(max=num_pieces - 1), is_banned | (ids >= num_pieces)
