"""Serves plumb's requests on vLLM's AsyncLLM: the one Python program of the vllm engine.

Started by plumb, never by hand. Speaks frames over the inherited socket whose descriptor is its argument: two
little-endian uint32 (length of a JSON object, length of a binary part), then both. stdout belongs to vLLM's log.
What a vLLM version lacks is left out or said to be unknown, with a reason; nothing is guessed.
"""

import array
import asyncio
import contextlib
import dataclasses
import enum
import functools
import importlib
import inspect
import json
import os
import socket
import struct
import sys
import time
import traceback

FRAME = struct.Struct("<II")
ALL_REDUCE_ENVIRONMENT = (
    "VLLM_ALLREDUCE_USE_FLASHINFER",
    "VLLM_ALLREDUCE_USE_SYMM_MEM",
    "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC",
)
STATS_INTERVAL_S = 0.02
MOST_READY_PAYLOADS = 1024
LONGEST_READY_PAYLOAD = 1 << 16


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


# --- What vLLM resolved its arguments to ---------------------------------------------------------------------


def plain(value, depth=0):
    """`value` as JSON can hold it; what has no such form as its text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if depth > 8:
        return repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name, None), depth + 1) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item, depth + 1) for item in value), key=str)
    if hasattr(value, "to_dict"):
        with contextlib.suppress(Exception):
            return plain(value.to_dict(), depth + 1)
    return str(value)


class ReadyObserver:
    """Keeps the engines' READY payloads while AsyncLLM is constructed, and nothing of it longer."""

    def __init__(self):
        self.payloads = []
        self.reason = ""
        self.signature = None

    @contextlib.contextmanager
    def watching(self):
        try:
            client = importlib.import_module("vllm.v1.engine.core_client").MPClient
            original = client._apply_ready_response
            self.signature = str(inspect.signature(original))
        except (ImportError, AttributeError) as error:
            self.reason = f"this vLLM has no READY callback to observe ({error})"
            yield
            return
        if list(inspect.signature(original).parameters) != ["self", "payload"]:
            self.reason = f"the READY callback has the unknown signature {self.signature}"
            yield
            return

        def observe(client_self, payload):
            if len(self.payloads) < MOST_READY_PAYLOADS and len(payload) <= LONGEST_READY_PAYLOAD:
                self.payloads.append(bytes(payload))
            else:
                self.reason = "the READY payloads exceed the bounds of the observer"
            return original(client_self, payload)

        client._apply_ready_response = observe
        try:
            yield
        finally:
            if client._apply_ready_response is observe:
                client._apply_ready_response = original
            else:
                self.reason = "the READY callback was replaced while it was observed"

    def capacity(self, engines):
        """kv_cache.capacity, schema 1. `engines`: how many engines the client is connected to."""
        observer = {"callback_signature": self.signature, "response_fields": None}
        unknown = {"schema": 1, "status": "unknown", "per_engine": None, "observer": observer}
        if self.reason:
            return {**unknown, "reason": self.reason}
        try:
            decode = importlib.import_module("msgspec").msgpack.decode
            responses = [decode(payload) for payload in self.payloads]
        except Exception as error:
            return {**unknown, "reason": f"a READY payload cannot be decoded: {error}"}
        if not responses or not all(isinstance(response, dict) for response in responses):
            return {**unknown, "reason": f"{len(responses)} READY payloads that are maps were seen"}
        observer["response_fields"] = sorted({str(key) for response in responses for key in response})
        needed = (
            "data_parallel_rank",
            "num_gpu_blocks",
            "block_size",
            "kv_cache_size_tokens",
            "tensor_parallel_size",
            "pipeline_parallel_size",
            "data_parallel_size",
            "world_size",
        )
        per_engine = []
        for response in responses:
            missing = [name for name in needed if not isinstance(response.get(name), int)]
            if missing:
                return {**unknown, "reason": "READY does not tell " + ", ".join(missing)}
            per_engine.append({name: response[name] for name in needed})
        ranks = sorted(entry["data_parallel_rank"] for entry in per_engine)
        if len(set(ranks)) != len(ranks) or len(ranks) != engines:
            return {**unknown, "reason": f"READY came from ranks {ranks}, the client has {engines} engines"}
        per_engine.sort(key=lambda entry: entry["data_parallel_rank"])
        return {"schema": 1, "status": "complete", "per_engine": per_engine, "observer": observer}


class WorkerFacts:
    """Mixed into vLLM's workers (worker_extension_cls): tells what only they know, and changes nothing."""

    def plumbline_graph_policy(self):
        runner = self.model_runner
        holder = getattr(runner, "cudagraph_dispatcher", None)
        captured = getattr(holder, "cudagraph_keys", None)
        if captured is None:
            holder = getattr(runner, "cudagraph_manager", None)
            captured = getattr(holder, "_capture_descs", None)
        grids = None
        if captured is not None:
            grids = {
                mode.name: sorted({descriptor.num_tokens for descriptor in descriptors})
                for mode, descriptors in captured.items()
            }
        mode = getattr(holder, "cudagraph_mode", None)
        return {
            "mode": None if mode is None else mode.name,
            "grids": grids,
            "runner": type(runner).__name__,
            "device": str(getattr(self, "device", None)),
            "model": str(self.model_config.model),
            "dtype": str(self.model_config.dtype),
            "rank": int(getattr(self, "rank", 0)),
        }


async def graph_policy(engine, parallel_config, expected_ranks):
    """`execution` of meta.json: the workers' own answer, or unknown with a reason."""
    unknown = {"status": "unknown"}
    client = engine.engine_core
    method = "plumbline_graph_policy"
    try:
        ask = getattr(client, "_call_utility_async", None)
        identities = getattr(client, "core_engines", None)
        if ask is not None and identities and len(identities) > 1:
            answers = []
            for identity in identities:
                answers += await ask("collective_rpc", method, 60.0, (), None, engine=identity)
        else:
            answers = await engine.collective_rpc(method, timeout=60.0)
    except Exception as error:
        return {**unknown, "reason": f"the workers were not asked: {type(error).__name__}: {error}"}
    if len(answers) != expected_ranks:
        return {**unknown, "reason": f"{len(answers)} of {expected_ranks} ranks answered"}
    first = {key: value for key, value in answers[0].items() if key not in ("rank", "device")}
    for answer in answers[1:]:
        other = {key: value for key, value in answer.items() if key not in ("rank", "device")}
        if other != first:
            return {**unknown, "reason": f"the ranks disagree: {first} and {other}"}
    if first["mode"] is None or first["grids"] is None:
        return {**unknown, "reason": "this vLLM's workers do not tell their graph mode", "observed": first}
    return {
        "status": "complete",
        "cudagraph_mode": first["mode"],
        "full": first["grids"].get("FULL", []),
        "piecewise": first["grids"].get("PIECEWISE", []),
        "runner": first["runner"],
        "model": first["model"],
        "dtype": first["dtype"],
        "devices": [answer["device"] for answer in answers],
        "ranks": expected_ranks,
        "tensor_parallel_size": parallel_config.tensor_parallel_size,
        "pipeline_parallel_size": parallel_config.pipeline_parallel_size,
        "data_parallel_size": parallel_config.data_parallel_size,
    }


def hardware():
    facts = {
        "torch_version": None,
        "cuda_version": None,
        "device_count": 0,
        "device_name": None,
        "device_total_memory_bytes": None,
        "device_capability": None,
        "device_uuid": None,
        "cpu_affinity": sorted(os.sched_getaffinity(0)),
        "numa_nodes": None,
        "all_reduce_environment": {name: os.environ.get(name) for name in ALL_REDUCE_ENVIRONMENT},
    }
    with contextlib.suppress(OSError):
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("Mems_allowed_list:"):
                    facts["numa_nodes"] = line.split(":", 1)[1].strip()
    with contextlib.suppress(ImportError):
        torch = importlib.import_module("torch")
        facts["torch_version"] = str(torch.__version__)
        facts["cuda_version"] = getattr(torch.version, "cuda", None)
    with contextlib.suppress(ImportError):
        platform = importlib.import_module("vllm.platforms").current_platform
        asked = {
            "device_name": "get_device_name",
            "device_total_memory_bytes": "get_device_total_memory",
            "device_uuid": "get_device_uuid",
            "device_capability": "get_device_capability",
        }
        for fact, method in asked.items():
            with contextlib.suppress(Exception):
                facts[fact] = plain(getattr(platform, method)(0))
        with contextlib.suppress(Exception):
            facts["device_count"] = int(platform.device_count())
    return facts


def describe(engine, capacity, execution, kwargs):
    config = engine.vllm_config
    cache = config.cache_config
    model = config.model_config
    blocks, block_size = getattr(cache, "num_gpu_blocks", None), getattr(cache, "block_size", None)
    vocabulary = None
    with contextlib.suppress(Exception):
        vocabulary = int(model.get_vocab_size())
    return {
        "vllm_version": str(sys.modules["vllm"].__version__),
        "python_version": sys.version.split()[0],
        "model": str(model.model),
        "dtype": str(model.dtype).replace("torch.", ""),
        "kv_cache_dtype": str(cache.cache_dtype),
        "vocab_size": vocabulary,
        "max_model_len": model.max_model_len,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "enable_prefix_caching": bool(cache.enable_prefix_caching),
        "kv_cache_memory_bytes": getattr(cache, "kv_cache_memory_bytes", None),
        "gpu_memory_utilization": cache.gpu_memory_utilization,
        "kv_cache": {
            "num_gpu_blocks": blocks,
            "num_cpu_blocks": getattr(cache, "num_cpu_blocks", None),
            "block_size": block_size,
            "gpu_memory_utilization": cache.gpu_memory_utilization,
            "enable_prefix_caching": bool(cache.enable_prefix_caching),
            "kv_cache_memory_bytes": getattr(cache, "kv_cache_memory_bytes", None),
            "num_kv_tokens": blocks * block_size if blocks and block_size else None,
        },
        "capacity": capacity,
        "resolved_config": plain(config),
        "hardware": hardware(),
        "execution": execution,
        "engine_kwargs": plain(kwargs),
    }


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
        own["worker_extension_cls"] = f"{os.path.splitext(os.path.basename(__file__))[0]}.WorkerFacts"
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
        if finished.get("dead"):
            raise_later(error_text(finished))
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


def error_text(finished):
    return f"request {finished['id']}: {finished['error']}"


def raise_later(text):
    """Tells the main task that the engine is dead, whichever request notices it first."""
    if not DEATH.done():
        DEATH.set_result(text)


DEATH = None


async def serve(descriptor):
    global DEATH
    DEATH = asyncio.get_running_loop().create_future()
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor))
    channel = Channel(reader, writer)
    code = 0
    try:
        options, _ = await channel.receive()
        engine, totals = await boot(channel, options)
        server = Server(channel, engine, totals, options["token_times"])
        running = asyncio.create_task(server.run())
        await asyncio.wait({running, DEATH}, return_when=asyncio.FIRST_COMPLETED)
        if DEATH.done():
            running.cancel()
            channel.send({"type": "fatal", "kind": "engine", "text": DEATH.result()})
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
