"""What cleaning drops and repairs, as functions of Arrow batches."""

from collections.abc import Sequence

import pyarrow as pa

from nmt.config import CleanConfig
from nmt.data.defects import defect, in_other_scripts, numbers_differ
from nmt.data.entities import unescape
from nmt.data.ledger import Action, Entry
from nmt.lines import name_repairs, normalise


def clean(
    batch: pa.RecordBatch, rules: CleanConfig, src_lang: str, tgt_lang: str
) -> tuple[pa.RecordBatch, list[Entry]]:
    """Return the normalised pairs that stay, and an entry for each that went or was mended.

    A batch has the columns line, src, tgt. What is judged here needs one pair alone and no
    vocabulary. There is one entry a pair, in the order of the lines.
    """
    raw_src, raw_tgt = ([text or "" for text in side] for side in sides(batch))
    src, tgt = _mended(raw_src, rules), _mended(raw_tgt, rules)
    reasons = [_why_dropped(*pair, rules) for pair in zip(src, tgt, strict=True)]
    for side, texts, language in (("source", src, src_lang), ("target", tgt, tgt_lang)):
        for row in in_other_scripts(texts, language, rules.min_script):
            reasons[row] = reasons[row] or f"other script in {side}"
    mended = [
        Entry(line, *_what_was_mended(raw_src[row], raw_tgt[row], rules))
        for row, line in enumerate(batch.column("line").to_pylist())
        if not reasons[row] and (src[row], tgt[row]) != (raw_src[row], raw_tgt[row])
    ]
    columns = [batch.column("line"), pa.array(src, pa.string()), pa.array(tgt, pa.string())]
    kept, dropped = keep_rows(pa.record_batch(columns, schema=batch.schema), reasons)
    return kept, sorted(dropped + mended)


def why_length(src_ids: Sequence[int], tgt_ids: Sequence[int], rules: CleanConfig) -> str:
    """Return "too long", "length ratio" or ""; the stop token that ends the ids is not counted."""
    shorter, longer = sorted((len(src_ids) - 1, len(tgt_ids) - 1))
    if longer > rules.max_tokens:
        return "too long"
    return "length ratio" if longer > rules.max_ratio * shorter else ""


def keep_rows(batch: pa.RecordBatch, reasons: Sequence[str]) -> tuple[pa.RecordBatch, list[Entry]]:
    """Return the rows without a reason to drop them, and an entry for each of the others."""
    lines = batch.column("line").to_pylist()
    dropped = [
        Entry(line, "dropped", reason)
        for line, reason in zip(lines, reasons, strict=True)
        if reason
    ]
    return batch.filter(pa.array([not reason for reason in reasons], pa.bool_())), dropped


def sides(batch: pa.RecordBatch) -> tuple[list[str], list[str]]:
    """Return the source and the target column."""
    return batch.column("src").to_pylist(), batch.column("tgt").to_pylist()


def _mended(texts: list[str], rules: CleanConfig) -> list[str]:
    return [normalise(unescape(text) if rules.unescape else text) for text in texts]


def _why_dropped(src: str, tgt: str, rules: CleanConfig) -> str:
    if not src:
        return "empty source"
    if not tgt:
        return "empty target"
    if rules.drop_copies and src == tgt:
        return "copy"
    if found := defect(src, rules):
        return f"{found} in source"
    if found := defect(tgt, rules):
        return f"{found} in target"
    return "other numbers" if rules.drop_other_numbers and numbers_differ(src, tgt) else ""


def _what_was_mended(src: str, tgt: str, rules: CleanConfig) -> tuple[Action, str]:
    """Say what `_mended` did to two texts of which it changed at least one."""
    repairs = []
    for side, raw in (("source", src), ("target", tgt)):
        text = unescape(raw) if rules.unescape else raw
        names = ["entities"] if text != raw else []
        repairs += [f"{name} in {side}" for name in [*names, *name_repairs(text)]]
    return ("repaired", " and ".join(repairs)) if repairs else ("trimmed", "blanks or line ends")
