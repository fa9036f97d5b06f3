#!/bin/sh
# Installs the engines that benches/peers.py and benches/transformers.py compare with, each in an
# environment of its own under $PEERS_DIR. One of them has the import name that ours will have, so
# they must never share an environment.
set -eu
python=${PYTHON:-python3}
folder=${PEERS_DIR:-.peers}
install() {
    name=$1
    shift
    if [ -e "$folder/$name/done" ]; then
        echo "$name: already there"
        return
    fi
    "$python" -m venv "$folder/$name"
    "$folder/$name/bin/pip" install --quiet "$@" && touch "$folder/$name/done" || echo "$name: could not be installed, will be left out" >&2
}
mkdir -p "$folder"
install pyhf 'pyhf[minuit]==0.7.6'
install ns 'nextstat==0.10.1' numpy
install root 'root==0.1a12' numpy
# PyTorch without CUDA where that index can be reached; llama.cpp is compiled for this machine.
install transformers --extra-index-url https://download.pytorch.org/whl/cpu torch transformers gguf numpy safetensors 'llama-cpp-python==0.3.36'
