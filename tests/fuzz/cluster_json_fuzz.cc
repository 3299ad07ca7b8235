#include <cstddef>
#include <cstdint>

#include "engine/base/error.h"
#include "fixtures/profile/cluster_file.h"
#include "tests/fakes/temp_folder.h"
#include "tests/fuzz/bytes_as_file.h"

namespace {

// A root with one model, one architecture and one profile, for configurations that get so far.
class TinyRoot {
 public:
  TinyRoot() {
    folder_.Write("configs/model/tiny.json",
                  R"({"model_type": "tiny", "hidden_size": 64, "num_hidden_layers": 2,
                      "num_attention_heads": 4, "vocab_size": 128, "intermediate_size": 128, "num_experts": 8,
                      "num_experts_per_tok": 2, "max_position_embeddings": 4096})");
    folder_.Write("profiler/models/tiny.yaml", "sequence: {head: [x]}\ncatalog: {dense: {x: {}}}\n");
    const std::string bundle = "profiler/perf/BOX/tiny/bf16/";
    folder_.Write(bundle + "meta.yaml", "skew_fit: {enabled: false}\n");
    folder_.Write(bundle + "tp1/dense.csv", "layer,tokens,time_us\nx,1,1\n");
    folder_.Write(bundle + "tp1/per_sequence.csv", "layer,sequences,time_us\nx,1,1\n");
    folder_.Write(bundle + "tp1/attention.csv",
                  "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,4\n");
  }
  plumbline::SimulatorRoots roots() const { return plumbline::FindSimulatorRoots("unused", folder_.path()); }

 private:
  plumbline::TempFolder folder_;
};

}  // namespace

// Any bytes are a cluster that can be laid out, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TinyRoot root;
  static const plumbline::SimulatorRoots roots = root.roots();
  const plumbline::BytesAsFile file(data, size);
  try {
    plumbline::PlanCluster(plumbline::ReadClusterFile(file.path(), roots, {}).spec);
  } catch (const plumbline::Error&) {
  }
  return 0;
}
