#!/usr/bin/env python3
"""Quantises a GGUF file of single precision with llama.cpp, every matrix alike.

    transformer_quantise.py '{"path": …, "of": …, "kind": 14}'
"""
import ctypes
import json
import os
import sys

import llama_cpp


@llama_cpp.llama_log_callback
def silent(_level, _text, _data):
    """It would say a line for every matrix."""


def main():
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    request = json.loads(sys.argv[1])
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype, settings.pure = request["kind"], True
    part = request["path"] + ".part"
    if llama_cpp.llama_model_quantize(request["of"].encode(), part.encode(), settings) != 0:
        raise SystemExit(f"llama.cpp could not write {part}")
    os.replace(part, request["path"])


if __name__ == "__main__":
    sys.exit(main())
