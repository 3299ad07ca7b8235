"""Serves plumb's requests on vLLM's AsyncLLM: the Python program of the vllm engine.

Started by plumb, never by hand. Speaks frames over the inherited socket whose descriptor is its argument: two
little-endian uint32 (length of a JSON object, length of a binary part), then both. stdout belongs to vLLM's log.
What a vLLM version lacks is left out or said to be unknown, with a reason; nothing is guessed.
"""

import array
import asyncio
import contextlib
import dataclasses
import functools
import importlib
import inspect
import json
import socket
import struct
import sys
import time
import traceback

from plumbline_vllm_facts import WORKER_EXTENSION, ReadyObserver, describe, graph_policy

FRAME = struct.Struct("<II")
STATS_INTERVAL_S = 0.02


class BadArgument(Exception):
    """An engine argument that this vLLM does not have or does not take."""


class Channel:
    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    async def receive(self):
        text_length, blob_length = FRAME.unpack(await self._reader.readexactly(FRAME.size))
        message = json.loads(await self._reader.readexactly(text_length))
        return message, await self._reader.readexactly(blob_length)

    def send(self, message, blob=b""):
        text = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        self._writer.write(FRAME.pack(len(text), len(blob)) + text + blob)

    async def drain(self):
        await self._writer.drain()


# --- Boot ----------------------------------------------------------------------------------------------------


class Totals:
    """What the stat loggers of all engines counted, pushed to plumb when it changed."""

    def __init__(self, channel):
        self._channel = channel
        self._sums = dict.fromkeys(("prompt", "computed", "cached", "generation", "preemptions"), 0)
        self._state = {}
        self._dirty = False

    def add(self, engine_index, scheduler, iteration):
        if iteration is not None:
            prompt = getattr(iteration, "prompt_token_stats", None)
            total = getattr(iteration, "num_prompt_tokens", 0)
            cached = getattr(prompt, "cached_tokens", 0)
            self._sums["prompt"] += total
            self._sums["computed"] += getattr(prompt, "computed", total - cached)
            self._sums["cached"] += cached
            self._sums["generation"] += iteration.num_generation_tokens
            self._sums["preemptions"] += getattr(iteration, "num_preempted_reqs", 0)
        if scheduler is not None:
            skipped = getattr(scheduler, "num_skipped_waiting_reqs", 0)
            self._state[engine_index] = (
                scheduler.num_running_reqs,
                scheduler.num_waiting_reqs + skipped,
                scheduler.kv_cache_usage,
            )
        self._dirty = True

    def flush(self):
        if not self._dirty:
            return
        self._dirty = False
        states = list(self._state.values())
        usage = sum(state[2] for state in states) / len(states) if states else None
        self._channel.send(
            {
                "type": "stats",
                **self._sums,
                "running": sum(state[0] for state in states) if states else None,
                "waiting": sum(state[1] for state in states) if states else None,
                "kv_cache_usage": usage,
            }
        )


def stat_logger_factory(totals):
    base = importlib.import_module("vllm.v1.metrics.loggers").StatLoggerBase

    class PlumblineStatLogger(base):
        def __init__(self, vllm_config=None, engine_index=0, *_, **__):
            self._engine_index = engine_index

        def record(self, scheduler_stats=None, iteration_stats=None, *_, **__):
            totals.add(self._engine_index, scheduler_stats, iteration_stats)

        def log_engine_initialized(self, *_, **__):
            pass

        def log(self, *_, **__):
            pass

    return PlumblineStatLogger


def checked_arguments(arguments_class, kwargs):
    known = {field.name for field in dataclasses.fields(arguments_class)}
    for name in kwargs:
        if name not in known:
            raise BadArgument(f"{name} is no engine argument of vLLM {sys.modules['vllm'].__version__}")
    return kwargs


def without_unknown_passes(kwargs, warnings):
    """Leaves out the compiler switches that this version's PassConfig does not have."""
    compilation = kwargs.get("compilation_config")
    try:
        module = importlib.import_module("vllm.config.compilation")
        known = {field.name for field in dataclasses.fields(module.PassConfig)}
    except (ImportError, AttributeError, TypeError):
        warnings.append("this vLLM's PassConfig was not found; compilation overrides are passed unchecked")
        return kwargs
    if not isinstance(compilation, dict) or not isinstance(compilation.get("pass_config"), dict):
        return kwargs
    kept = {name: value for name, value in compilation["pass_config"].items() if name in known}
    for name in compilation["pass_config"].keys() - kept.keys():
        warnings.append(f"this vLLM has no compilation pass {name} that could be switched off")
    return {**kwargs, "compilation_config": {**compilation, "pass_config": kept}}


async def boot(channel, options):
    """The engine and its totals, after `ready` has been sent."""
    vllm = importlib.import_module("vllm")
    channel.send({"type": "booting", "vllm_version": str(vllm.__version__)})
    await channel.drain()
    arguments_class = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs
    async_llm = importlib.import_module("vllm.v1.engine.async_llm").AsyncLLM
    warnings = []
    kwargs = without_unknown_passes(checked_arguments(arguments_class, options["kwargs"]), warnings)
    own = {"disable_log_stats": False}
    if "worker_extension_cls" not in kwargs:
        own["worker_extension_cls"] = WORKER_EXTENSION
    try:
        arguments = arguments_class(**kwargs, **own)
    except (ValueError, TypeError) as error:
        raise BadArgument(str(error)) from error
    totals = Totals(channel)
    observer = ReadyObserver()
    with observer.watching():
        engine = async_llm.from_engine_args(arguments, stat_loggers=[stat_logger_factory(totals)])
    parallel = engine.vllm_config.parallel_config
    engines = len(getattr(engine.engine_core, "core_engines", None) or [0])
    ranks = parallel.tensor_parallel_size * parallel.pipeline_parallel_size * engines
    execution = await graph_policy(engine, parallel, ranks)
    facts = describe(engine, observer.capacity(engines), execution, kwargs)
    facts["warnings"] = warnings
    channel.send({"type": "ready", "facts": facts})
    await channel.drain()
    return engine, totals


# --- Serving -------------------------------------------------------------------------------------------------


class Server:
    def __init__(self, channel, engine, totals, token_times):
        self._channel = channel
        self._engine = engine
        self._totals = totals
        self._token_times = token_times
        self._tasks = {}
        # Why the engine is dead, from whichever request notices it first.
        self.death = asyncio.get_running_loop().create_future()
        kinds = importlib.import_module("vllm.sampling_params")
        self._sampling_params = kinds.SamplingParams
        self._output_kind = kinds.RequestOutputKind.DELTA if token_times else kinds.RequestOutputKind.FINAL_ONLY

    async def run(self):
        flusher = asyncio.create_task(self._flush_regularly())
        try:
            while True:
                message, blob = await self._channel.receive()
                kind = message["type"]
                if kind == "submit":
                    self._submit(message["requests"], blob, time.monotonic())
                elif kind == "cancel":
                    task = self._tasks.get(message["id"])
                    if task is not None:
                        task.cancel()
                elif kind == "reset_prefix_cache":
                    done = await self._engine.reset_prefix_cache()
                    self._totals.flush()
                    self._channel.send({"type": "reply", "call": message["call"], "value": bool(done)})
                elif kind == "shutdown":
                    return
        finally:
            flusher.cancel()

    async def shut_down(self):
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        result = self._engine.shutdown()
        if inspect.isawaitable(result):
            await result

    async def _flush_regularly(self):
        while True:
            await asyncio.sleep(STATS_INTERVAL_S)
            self._totals.flush()

    def _submit(self, requests, blob, received):
        ids = array.array("i")
        ids.frombytes(blob)
        begin = 0
        for request in requests:
            end = begin + request["input_toks"]
            task = asyncio.create_task(self._serve(request, ids[begin:end].tolist(), received))
            self._tasks[request["id"]] = task
            task.add_done_callback(functools.partial(self._tell_unstarted, request["id"], received))
            begin = end

    def _tell_unstarted(self, request_id, received, _):
        """A task that is cancelled before its first step never runs, so it cannot tell its own end."""
        if self._tasks.pop(request_id, None) is not None:
            finished = {"type": "finished", "id": request_id, "received": received, "reason": "abort"}
            self._channel.send({**finished, "num_stamps": 0})

    async def _serve(self, request, prompt_ids, received):
        finished = {"type": "finished", "id": request["id"], "received": received, "reason": "error"}
        tokens = array.array("i")
        stamps = array.array("d")
        try:
            await self._generate(request, prompt_ids, finished, tokens, stamps)
        except asyncio.CancelledError:
            finished["reason"] = "abort"
        except Exception as error:
            finished["error"] = f"{type(error).__name__}: {error}"
            finished["dead"] = type(error).__name__ == "EngineDeadError"
        finally:
            del self._tasks[request["id"]]
        if finished.pop("dead", False) and not self.death.done():
            self.death.set_result(f"request {finished['id']}: {finished['error']}")
        # The step's statistics are recorded after its outputs were handed out: let them come first.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        self._totals.flush()
        finished["num_stamps"] = len(stamps)
        self._channel.send(finished, tokens.tobytes() + stamps.tobytes())

    async def _generate(self, request, prompt_ids, finished, tokens, stamps):
        length = request["output_toks"]
        sampling = {"temperature": request["temperature"], "seed": request["seed"]}
        if request["top_k"] > 0:
            sampling["top_k"] = request["top_k"]
        if request["top_p"] < 1:
            sampling["top_p"] = request["top_p"]
        params = self._sampling_params(
            min_tokens=length,
            max_tokens=length,
            ignore_eos=True,
            detokenize=False,
            output_kind=self._output_kind,
            **sampling,
        )
        output = None
        outputs = self._engine.generate(
            {"prompt_token_ids": prompt_ids}, params, request_id=f"bench-{request['id']}"
        )
        async for output in outputs:
            tokens.extend(output.outputs[0].token_ids)
            if self._token_times and output.metrics is not None:
                stamps.extend([output.metrics.last_token_ts] * (len(tokens) - len(stamps)))
        finished["reason"] = str(output.outputs[0].finish_reason)
        finished["cached_toks"] = output.num_cached_tokens
        if output.metrics is not None:
            finished["arrival"] = output.metrics.arrival_time
            finished["queued"] = output.metrics.queued_ts
            finished["scheduled"] = output.metrics.scheduled_ts
            finished["first_token"] = output.metrics.first_token_ts
            finished["last_token"] = output.metrics.last_token_ts
            finished["preemptions"] = getattr(output.metrics, "num_preemptions", None)


async def serve(descriptor):
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    channel = Channel(reader, writer)
    code = 0
    try:
        options, _ = await channel.receive()
        engine, totals = await boot(channel, options)
        server = Server(channel, engine, totals, options["token_times"])
        running = asyncio.create_task(server.run())
        await asyncio.wait({running, server.death}, return_when=asyncio.FIRST_COMPLETED)
        if server.death.done():
            running.cancel()
            channel.send({"type": "fatal", "kind": "engine", "text": server.death.result()})
            code = 1
        else:
            running.result()
        await server.shut_down()
        channel.send({"type": "bye"})
    except (asyncio.IncompleteReadError, ConnectionError):
        return 1  # plumb is gone; the guard clears up
    except BadArgument as error:
        channel.send({"type": "fatal", "kind": "argument", "text": str(error)})
        code = 1
    except BaseException as error:
        traceback.print_exc()
        channel.send({"type": "fatal", "kind": "engine", "text": f"{type(error).__name__}: {error}"})
        code = 1
    with contextlib.suppress(ConnectionError):
        await channel.drain()
        writer.close()
        await writer.wait_closed()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(int(sys.argv[1]))))
