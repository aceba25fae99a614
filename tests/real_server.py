"""llama.cpp's own HTTP server with one GGUF file, as a process that a test can stop or kill; see real_model.py.

    python real_server.py MODEL.gguf CONTEXT [API_KEY]

Prints `PORT <number>` before it loads the model and `LISTENING` when it is loaded; ends on SIGTERM. A fixed seed and no
prompt cache make each reply depend on its request alone; one thread, since more of them spin where cores are few.
"""

import signal
import socket
import sys
import threading

import xllamacpp  # type: ignore[import-not-found, unused-ignore]  # in the virtual environment that real_model.py makes

if __name__ == "__main__":
    model, context, *keys = sys.argv[1:]
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    print("PORT", port, flush=True)
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.port, settings.n_ctx, settings.n_parallel = model, port, int(context), 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.sampling.seed = 42
    settings.cache_prompt = settings.cache_idle_slots = False
    settings.api_keys = keys
    server = xllamacpp.Server(settings)
    print("LISTENING", flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ended.wait()
