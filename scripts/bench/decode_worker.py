"""Translates a file in a process of its own, for decode.py, and prints what it took as JSON.

Time is from text to text, for the toolkits of decode_peers.py from pieces to pieces, the model
loaded and warm. Only the engine nmt needs nmt: the others run in environments of their own.
"""

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

MAX_LENGTH = 1000  # of a translation; mostly the source's length times two comes first
STACKS = ("encoder", "decoder")
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


def load_onmt(options: argparse.Namespace) -> Translate:
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoint holds a Namespace
    import torch
    from onmt.bin.translate import _get_parser
    from onmt.inference_engine import InferenceEnginePY
    from onmt.utils.parse import ArgumentParser

    torch.set_num_threads(options.threads)
    words = {
        "-model": f"{options.model}/model.pt",
        "-src": options.source,
        "-output": os.devnull,
        "-batch_size": options.batch,
        "-beam_size": options.beam,
        "-length_penalty": "avg",
        "-max_length": MAX_LENGTH,
        "-max_length_ratio": 2,
    }
    given = _get_parser().parse_args([str(word) for pair in words.items() for word in pair])
    ArgumentParser.validate_translate_opts(given)
    ArgumentParser._get_all_transform_translate(given)
    ArgumentParser._validate_transforms_opts(given)
    ArgumentParser.validate_translate_opts_dynamic(given)
    engine = InferenceEnginePY(given)
    if options.post_norm:
        stacks = ("encoder.transformer.0.layer_norm", "decoder.transformer_layers.0.layer_norm_1")
        compute_post_norm(engine.translator.model, stacks)
    return lambda lines: [best[0] for best in engine.infer_list(with_stop(lines))[1]]


def load_eole(options: argparse.Namespace) -> Translate:
    import torch
    from eole.config.run import PredictConfig
    from eole.inference_engine import InferenceEnginePY

    torch.set_num_threads(options.threads)
    config = PredictConfig(
        model_path=[options.model],
        src=str(options.source),
        output=os.devnull,
        batch_size=options.batch,
        batch_type="sents",
        beam_size=options.beam,
        length_penalty="avg",
        max_length=MAX_LENGTH,
        max_length_ratio=2,
        world_size=1,
        gpu_ranks=[],
    )
    engine = InferenceEnginePY(config)
    if options.post_norm:
        stacks = [f"{stack}.transformer_layers.0.input_layernorm" for stack in STACKS]
        compute_post_norm(engine.predictor.model, stacks)
    return lambda lines: [best[0] for best in engine.infer_list(with_stop(lines))[2]]


def load_joeynmt(options: argparse.Namespace) -> Translate:
    import torch
    from joeynmt.config import load_config, parse_global_args
    from joeynmt.prediction import predict, prepare

    torch.set_num_threads(options.threads)
    config = load_config(f"{options.model}/config.yaml")
    config["testing"].update(beam_size=options.beam, batch_size=options.batch)
    args = parse_global_args(config, mode="translate")
    model, _, _, data = prepare(args, rank=0, mode="translate")

    def translate(lines: list[str]) -> list[str]:
        data.reset_cache()
        for line in lines:
            data.set_item(line)
        found = predict(
            model, data, args.device, args.n_gpu, args=args.test, autocast=args.autocast
        )
        return [" ".join(pieces) for pieces in found[3]]

    return translate


def with_stop(lines: list[str]) -> list[str]:
    """End the source with the stop token, as nmt does, and OpenNMT-py and eole do not."""
    return [f"{line} </s>" for line in lines]


def compute_post_norm(model: Any, first_norms: Iterable[str]) -> None:
    """Let stacks that are written for pre-norm compute post-norm.

    Each norm writes its result into its input too, so that the residual beside it takes what is
    normalised. None comes before the first sub-layer of a stack.
    """
    from torch.nn import LayerNorm

    for module in model.modules():
        if isinstance(module, LayerNorm):
            module.forward = partial(_norm_in_place, module.forward)  # type: ignore[method-assign]
    for name in first_norms:
        model.get_submodule(name).forward = lambda x: x


def _norm_in_place(norm: Callable[[Any], Any], x: Any) -> Any:
    return x.copy_(norm(x))


LOADERS = {
    "nmt": load_nmt,
    "ctranslate2": load_ctranslate2,
    "onmt": load_onmt,
    "eole": load_eole,
    "joeynmt": load_joeynmt,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=LOADERS)
    parser.add_argument("model", help="a run folder, or what nmt export wrote")
    parser.add_argument("source", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--lines", type=int, help="translate the first so many only")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--engine-of-nmt", default="torch", help="torch or ctranslate2")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--post-norm", action="store_true", help="for what is written for pre-norm")
    parser.add_argument("--single", action="store_true", help="line by line: seconds of a line")
    options = parser.parse_args()
    lines = options.source.read_text(encoding="utf-8").split("\n")[:-1][: options.lines]
    translate = LOADERS[options.engine](options)
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
    # Not ru_maxrss, which begins with what the process that started this one had.
    peak_kb = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    print(json.dumps({"seconds": taken, "peak_mb": round(int(peak_kb) / 1024)}))


if __name__ == "__main__":
    main()
