#!/bin/sh
# Installs toolkits to compare with: install_peers.sh DIR PEER..., where PEER is sockeye, onmt
# (OpenNMT-py), eole or joeynmt. Each gets an environment of its own, DIR/PEER (Python 3.11, CPU, up to
# 1.6 GB). The pins of sockeye and onmt admit no current torch, so they come without dependencies, and
# what they need is named here; eole and joeynmt import a package each that they do not ask for.
set -eu

add() {
    "$folder/$peer/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

start() {
    python3 -m venv "$folder/$peer"
    add torch==2.13.0 "$@"
}

folder=$1
shift
for peer in "$@"; do
    case $peer in
        sockeye)
            start 'numpy<2' pyyaml sacrebleu==2.6.0
            add --no-deps sockeye==3.1.34
            ;;
        onmt)
            start 'numpy<2' pyyaml sacrebleu==2.6.0
            add setuptools configargparse 'ctranslate2>=4,<5' 'tensorboard>=2.3' flask waitress \
                'pyonmttok>=1.37,<2' rapidfuzz pyahocorasick fasttext-wheel spacy six sentencepiece==0.2.3
            add --no-deps opennmt-py==3.5.1
            ;;
        eole)
            start eole==0.6.4 aiohttp
            ;;
        joeynmt)
            start joeynmt==2.3.0 importlib_metadata
            ;;
        *)
            echo "install_peers.sh: no recipe for $peer, only for sockeye, onmt, eole and joeynmt" >&2
            exit 2
            ;;
    esac
done
