"""What vLLM resolved its arguments to: part of plumb's vLLM worker, beside which it lies.

What a vLLM version lacks is left out or said to be unknown, with a reason; nothing is guessed.
"""

import contextlib
import dataclasses
import enum
import importlib
import inspect
import os
import sys

ALL_REDUCE_ENVIRONMENT = (
    "VLLM_ALLREDUCE_USE_FLASHINFER",
    "VLLM_ALLREDUCE_USE_SYMM_MEM",
    "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC",
)
MOST_READY_PAYLOADS = 1024
LONGEST_READY_PAYLOAD = 1 << 16
# Found by vLLM's workers because they search where this file lies.
WORKER_EXTENSION = f"{__name__}.WorkerFacts"


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
