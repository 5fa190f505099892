"""Translates a file in a process of its own, for decode.py, and prints what it took as JSON.

Time is from text to text, the model loaded and warm. What is called CTranslate2 needs no nmt here:
only ctranslate2, sentencepiece and the folder that `nmt export` wrote.
"""

import argparse
import json
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

Translate = Callable[[list[str]], list[str]]


def load_nmt(options: argparse.Namespace) -> Translate:
    import torch

    from nmt import Translator
    from nmt.device import settle

    warnings.simplefilter("ignore")  # lines that were cut at their cap
    torch.set_num_threads(options.threads)
    translator = Translator.load(
        options.model, precision=options.precision, engine=options.engine_of_nmt
    )
    settle()
    return lambda lines: translator.translate(
        lines, beam=options.beam, batch_size=options.batch, length_penalty=1.0
    )


def load_ctranslate2(options: argparse.Namespace) -> Translate:
    import ctranslate2
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{options.model}/vocab.model")
    translator = ctranslate2.Translator(
        options.model,
        device="cpu",
        compute_type=options.precision,
        inter_threads=options.workers,
        intra_threads=options.threads // options.workers,
    )

    def translate(lines: list[str]) -> list[str]:
        src = [pieces.encode(line, out_type=str) for line in lines]
        found = translator.translate_batch(
            src,
            beam_size=options.beam,
            max_batch_size=options.batch,
            length_penalty=1.0,
            max_decoding_length=2 * max(map(len, src)) + 10,
        )
        return [pieces.decode(each.hypotheses[0]) for each in found]

    return translate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["nmt", "ctranslate2"])
    parser.add_argument("model", help="a run folder, or what nmt export wrote")
    parser.add_argument("source", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--engine-of-nmt", default="torch", help="torch or ctranslate2")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--single", action="store_true", help="line by line: seconds of a line")
    options = parser.parse_args()
    lines = options.source.read_text(encoding="utf-8").split("\n")[:-1]
    translate = (load_nmt if options.engine == "nmt" else load_ctranslate2)(options)
    translate(lines[:64])
    if options.single:
        seconds = []
        for line in lines[:10] + lines[:100]:
            start = time.perf_counter()
            translate([line])
            seconds.append(time.perf_counter() - start)
        taken = statistics.median(seconds[10:])
    else:
        start = time.perf_counter()
        out = translate(lines)
        taken = time.perf_counter() - start
        if options.output:
            options.output.write_text("".join(f"{line}\n" for line in out), encoding="utf-8")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": taken, "peak_mb": round(peak_mb)}))


if __name__ == "__main__":
    main()
