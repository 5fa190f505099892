#!/bin/sh
# Installs toolkits to compare with: install_peers.sh DIR PEER..., where PEER is sockeye or onmt (OpenNMT-py).
# Each gets an environment of its own, DIR/PEER (Python 3.11, CPU, up to 1.6 GB). Their own pins admit
# no current torch, so they come without dependencies, and what they need is named here.
set -eu

add() {
    "$folder/$peer/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

start() {
    python3 -m venv "$folder/$peer"
    add torch==2.13.0 'numpy<2' pyyaml sacrebleu==2.6.0
}

folder=$1
shift
for peer in "$@"; do
    case $peer in
        sockeye)
            start
            add --no-deps sockeye==3.1.34
            ;;
        onmt)
            start
            add setuptools configargparse 'ctranslate2>=4,<5' 'tensorboard>=2.3' flask waitress \
                'pyonmttok>=1.37,<2' rapidfuzz pyahocorasick fasttext-wheel spacy six sentencepiece==0.2.3
            add --no-deps opennmt-py==3.5.1
            ;;
        *)
            echo "install_peers.sh: no recipe for $peer, only for sockeye and onmt" >&2
            exit 2
            ;;
    esac
done
