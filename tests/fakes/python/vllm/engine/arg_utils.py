import dataclasses


@dataclasses.dataclass
class AsyncEngineArgs:
    model: str = ""
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    disable_custom_all_reduce: bool = False
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int | None = None
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    kv_cache_memory_bytes: int | None = None
    seed: int = 0
    load_format: str = "auto"
    skip_tokenizer_init: bool = False
    enforce_eager: bool = False
    block_size: int | None = None
    enable_prefix_caching: bool = True
    compilation_config: dict | None = None
    disable_log_stats: bool = False
    worker_extension_cls: str = ""
    gpu_memory_utilization: float = 0.92

    def __post_init__(self):
        if self.dtype == "float3":
            raise ValueError("dtype float3 is not one of float32, bfloat16")
