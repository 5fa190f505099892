"""make demo: trains on the embedded corpus, scores, and translates three sentences it never saw."""

import subprocess
import sys
from pathlib import Path

from nmt.run_folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "runs" / "demo"

# Made of words of the grammar, but no sentences of the corpus.
SENTENCES = (
    "A young woman is carrying a heavy basket.",
    "Two old dogs are sleeping under the table.",
    "The teacher who is standing in front of the school is holding a red umbrella.",
)


def nmt(*arguments: str, text: str | None = None) -> str:
    """Run a command of nmt; with a text it is fed to it, and what it prints is returned."""
    command = [sys.executable, "-m", "nmt", *arguments]
    print(f"$ nmt {' '.join(arguments)}", flush=True)
    output = None if text is None else subprocess.PIPE
    done = subprocess.run(
        command, cwd=ROOT, input=text, stdout=output, encoding="utf-8", check=True
    )
    return done.stdout or ""


def main() -> None:
    nmt("train", "configs/demo.yaml")
    if not RunFolder(RUN).read_record()["scores"]:
        nmt("eval", "runs/demo")
    translations = nmt("translate", "runs/demo", text="".join(f"{s}\n" for s in SENTENCES))
    for source, translation in zip(SENTENCES, translations.splitlines(), strict=True):
        print(f"{source}\n  -> {translation}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
