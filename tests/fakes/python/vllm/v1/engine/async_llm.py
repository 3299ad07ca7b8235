import asyncio
import dataclasses
import json
import os
import sys
import time
import types

from vllm import behaviour
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.core_client import MPClient

BLOCK_SIZE = 16
BLOCKS = 64


class EngineDeadError(Exception):
    pass


def ready_payload(rank):
    return json.dumps(
        {
            "data_parallel_rank": rank,
            "num_gpu_blocks": BLOCKS,
            "block_size": BLOCK_SIZE,
            "kv_cache_size_tokens": BLOCKS * BLOCK_SIZE,
            "tensor_parallel_size": 1,
            "pipeline_parallel_size": 1,
            "data_parallel_size": 1,
            "world_size": 1,
        }
    ).encode()


class Object(types.SimpleNamespace):
    pass


@dataclasses.dataclass
class VllmConfig:
    model_config: Object
    cache_config: Object
    scheduler_config: Object
    parallel_config: Object


class AsyncLLM:
    def __init__(self, arguments, stat_loggers):
        engines = 2 if behaviour("two-engines") else 1
        payloads = [] if behaviour("no-ready") else [ready_payload(rank) for rank in range(engines)]
        self.engine_core = MPClient(payloads)
        self.engine_core.core_engines = list(range(engines))
        model = Object(
            model=arguments.model,
            dtype="torch." + arguments.dtype,
            max_model_len=arguments.max_model_len or 2048,
            get_vocab_size=lambda: 1000,
        )
        cache = Object(
            num_gpu_blocks=BLOCKS * engines,
            num_cpu_blocks=None,
            block_size=BLOCK_SIZE,
            cache_dtype=arguments.kv_cache_dtype,
            enable_prefix_caching=arguments.enable_prefix_caching,
            kv_cache_memory_bytes=arguments.kv_cache_memory_bytes,
            gpu_memory_utilization=arguments.gpu_memory_utilization,
        )
        scheduler = Object(
            max_num_seqs=arguments.max_num_seqs, max_num_batched_tokens=arguments.max_num_batched_tokens
        )
        parallel = Object(tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=engines)
        self.vllm_config = VllmConfig(
            model_config=model, cache_config=cache, scheduler_config=scheduler, parallel_config=parallel
        )
        self._loggers = [factory(self.vllm_config, 0) for factory in stat_loggers]
        self._served = 0
        self._extension = arguments.worker_extension_cls

    @classmethod
    def from_engine_args(cls, arguments, stat_loggers=None):
        print("the fake engine boots")
        if behaviour("fail-boot"):
            raise RuntimeError("the fake engine does not boot")
        if behaviour("exit-boot"):
            print("last words of the fake engine", flush=True)
            os._exit(3)
        if behaviour("hang-boot"):
            while True:
                time.sleep(1000)
        return cls(arguments, stat_loggers or [])

    async def collective_rpc(self, method, timeout=None, args=(), kwargs=None):
        module, _, name = self._extension.partition(".")
        if not module.startswith("plumbline_vllm_") or not name:
            raise RuntimeError("the worker extension is not the worker's own")
        return [{"mode": "NONE", "grids": {}, "runner": "Fake", "device": "cpu", "model": "m", "dtype": "d", "rank": 0}]

    async def generate(self, prompt, params, request_id):
        self._served += 1
        for word in ("die", "exit", "hang"):
            number = behaviour(word)
            if number and self._served >= number:
                if word == "die":
                    raise EngineDeadError("EngineCore encountered an issue")
                if word == "exit":
                    print("last words of the fake engine", flush=True)
                    os._exit(3)
                await asyncio.sleep(1000)
        ids = prompt["prompt_token_ids"]
        metrics = Object(arrival_time=time.time(), queued_ts=time.monotonic(), num_preemptions=0)
        await asyncio.sleep(0)
        metrics.scheduled_ts = metrics.first_token_ts = metrics.last_token_ts = time.monotonic()
        delta = params.output_kind == RequestOutputKind.DELTA
        tokens = [(ids[-1] + i) % 1000 for i in range(params.max_tokens)]
        for index in range(0 if delta else len(tokens) - 1, len(tokens)):
            metrics.last_token_ts = time.monotonic()
            done = index + 1 == len(tokens)
            completion = Object(
                token_ids=tokens[index : index + 1] if delta else tokens, finish_reason="length" if done else None
            )
            yield Object(
                outputs=[completion], num_cached_tokens=0, metrics=None if behaviour("no-metrics") else metrics
            )
        iteration = Object(
            num_generation_tokens=len(tokens),
            num_prompt_tokens=len(ids),
            num_preempted_reqs=0,
            prompt_token_stats=Object(total=len(ids), computed=len(ids), cached_tokens=0),
        )
        scheduler = Object(num_running_reqs=0, num_waiting_reqs=0, num_skipped_waiting_reqs=0, kv_cache_usage=0.0)
        for logger in self._loggers:
            logger.record(scheduler_stats=scheduler, iteration_stats=iteration, engine_idx=0)

    async def reset_prefix_cache(self):
        return True

    def shutdown(self):
        print("the fake engine shuts down", file=sys.stderr)
