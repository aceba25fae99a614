"""llama.cpp's own HTTP server with one GGUF file, as a process that a test can stop or kill; see real_model.py.

    python real_server.py MODEL.gguf PORT CONTEXT [API_KEY]

Port 0 takes a free one. Prints `LISTENING <address>` when the model is loaded, and ends on SIGTERM. A fixed seed and no
prompt cache make each reply depend on its request alone; one thread, since more of them spin where cores are few.
"""

import signal
import sys
import threading

import xllamacpp  # type: ignore[import-not-found, unused-ignore]  # in the virtual environment that real_model.py makes

LONGEST_REPLY = 400  # characters; a small model may never end by itself, and the same seed would not help it

if __name__ == "__main__":
    model, port, context, *keys = sys.argv[1:]
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.port, settings.n_ctx, settings.n_parallel = model, int(port), int(context), 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.sampling.seed = 42
    settings.cache_prompt = settings.cache_idle_slots = False
    settings.api_keys = keys
    settings.sampling.grammar = xllamacpp.CommonGrammar(
        xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER, f"root ::= [^\\x00]{{1,{LONGEST_REPLY}}}"
    )
    server = xllamacpp.Server(settings)
    print("LISTENING", server.listening_address, flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ended.wait()
