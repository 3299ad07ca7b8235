"""vLLM with the throughput workload, for torch_benchmark.

Arguments: model folder, dtype, requests, input tokens, output tokens, max_num_seqs, max_num_batched_tokens.
Says "plumbline ready" once booted. For each line on standard input it serves all requests, submitted together, and
answers "plumbline <output tokens/s> <mean TTFT ms> <mean TPOT ms>". Shuts down at the end of its input.
"""

import asyncio
import random
import sys
import time

from vllm import SamplingParams
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM

VOCABULARY = 8192


async def serve(engine, prompt, params, request_id):
    """The request's time stamps: seconds from submission to the first and the last token, on one clock."""
    start = time.monotonic()
    first = None
    async for output in engine.generate({"prompt_token_ids": prompt}, params, request_id):
        if output.outputs[0].token_ids and first is None:
            first = time.monotonic()
    return first - start, time.monotonic() - start


async def main():
    model, dtype = sys.argv[1:3]
    requests, inputs, outputs, max_num_seqs, budget = (int(text) for text in sys.argv[3:8])
    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=model,
            dtype=dtype,
            load_format="dummy",
            skip_tokenizer_init=True,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=budget,
            enable_prefix_caching=False,
        )
    )
    params = SamplingParams(
        temperature=0.0,
        min_tokens=outputs,
        max_tokens=outputs,
        ignore_eos=True,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
    )
    generator = random.Random(1)
    prompts = [[generator.randrange(VOCABULARY) for _ in range(inputs)] for _ in range(requests)]
    print("plumbline ready", flush=True)
    loop = asyncio.get_running_loop()
    run = 0
    while await loop.run_in_executor(None, sys.stdin.readline):
        start = time.monotonic()
        stamps = await asyncio.gather(
            *(serve(engine, prompt, params, f"{run}-{i}") for i, prompt in enumerate(prompts))
        )
        elapsed = time.monotonic() - start
        ttft = sum(first for first, _ in stamps) / requests * 1000
        tpot = sum(last - first for first, last in stamps) / requests / (outputs - 1) * 1000
        print(f"plumbline {requests * outputs / elapsed:.3f} {ttft:.3f} {tpot:.3f}", flush=True)
        run += 1
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
