#include "engine/torch/checkpoint/model_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/json.h"
#include "engine/torch/checkpoint/rope_config.h"

namespace plumbline {
namespace {

struct Family {
  const char* architecture;
  const char* model_type;
  bool qkv_bias;               // always there, whatever attention_bias says
  bool qk_norm;                // always there
  std::int64_t head_dim;       // when the file leaves it out; 0 = hidden_size / num_attention_heads
  bool has_mlp_bias;           // reads mlp_bias
  bool attention_bias_counts;  // reads attention_bias, for q, k, v and the output projection
};

// The defaults are those of the family's configuration class in transformers.
constexpr std::array kFamilies = {
    Family{"LlamaForCausalLM", "llama", false, false, 0, true, true},
    Family{"Qwen2ForCausalLM", "qwen2", true, false, 0, false, false},
    Family{"Qwen3ForCausalLM", "qwen3", false, true, 128, false, true},
};

constexpr std::int64_t kLargestSize = std::int64_t{1} << 24;
constexpr std::int64_t kMostLayers = 4096;

// Read here or in rope_config.cc.
constexpr std::array kReadKeys = {"architectures",
                                  "model_type",
                                  "vocab_size",
                                  "hidden_size",
                                  "intermediate_size",
                                  "num_hidden_layers",
                                  "num_attention_heads",
                                  "num_key_value_heads",
                                  "head_dim",
                                  "max_position_embeddings",
                                  "rms_norm_eps",
                                  "rope_theta",
                                  "rope_scaling",
                                  "rope_parameters",
                                  "partial_rotary_factor",
                                  "tie_word_embeddings",
                                  "attention_bias",
                                  "mlp_bias",
                                  "dtype",
                                  "torch_dtype",
                                  "hidden_act",
                                  "sliding_window",
                                  "use_sliding_window",
                                  "max_window_layers",
                                  "layer_types",
                                  "quantization_config",
                                  "num_experts",
                                  "num_local_experts",
                                  "num_experts_per_tok",
                                  "moe_intermediate_size",
                                  "final_logit_softcapping",
                                  "attn_logit_softcapping",
                                  "is_encoder_decoder",
                                  "add_cross_attention",
                                  "pruned_heads"};

// Known to change nothing here: training, tokenizers, how the file was written, ends of sequences (ignored by
// design: lengths are pinned). pretraining_tp changes only the order of sums.
constexpr std::array kHarmlessKeys = {"attention_dropout",
                                      "bos_token_id",
                                      "eos_token_id",
                                      "pad_token_id",
                                      "unk_token_id",
                                      "sep_token_id",
                                      "initializer_range",
                                      "pretraining_tp",
                                      "use_cache",
                                      "transformers_version",
                                      "_name_or_path",
                                      "_attn_implementation_autoset",
                                      "name_or_path",
                                      "return_dict",
                                      "output_attentions",
                                      "output_hidden_states",
                                      "chunk_size_feed_forward",
                                      "id2label",
                                      "label2id",
                                      "problem_type",
                                      "tokenizer_class",
                                      "resid_pdrop",
                                      "embd_pdrop"};

template <typename List>
bool Contains(const List& list, const std::string& key) {
  return std::any_of(list.begin(), list.end(), [&](const char* known) { return key == known; });
}

const Family& ReadFamily(const JsonView& config) {
  const std::vector<JsonView> names = config.Array("architectures");
  if (names.size() != 1) {
    ThrowBadInput({.file = config.file(),
                   .field = "architectures",
                   .value = std::to_string(names.size()) + " entries",
                   .problem = "must name one architecture",
                   .accepted = KnownArchitectures()});
  }
  const std::string name = names[0].AsString();
  for (const Family& family : kFamilies) {
    if (name != family.architecture) continue;
    const auto type = config.MaybeString("model_type");
    if (type && *type != family.model_type) {
      ThrowBadInput({.file = config.file(),
                     .field = "model_type",
                     .value = *type,
                     .problem = "does not belong to the architecture " + name,
                     .accepted = family.model_type});
    }
    return family;
  }
  names[0].Fail("is an architecture that this engine does not know", KnownArchitectures());
}

std::int64_t Size(const JsonView& config, const std::string& key, std::int64_t value,
                  std::int64_t largest = kLargestSize) {
  if (value < 1 || value > largest) {
    ThrowBadInput({.file = config.file(),
                   .field = key,
                   .value = std::to_string(value),
                   .problem = "is out of range",
                   .accepted = "1 to " + std::to_string(largest)});
  }
  return value;
}

std::int64_t RequiredSize(const JsonView& config, const std::string& key,
                          std::int64_t largest = kLargestSize) {
  return Size(config, key, config.Int(key), largest);
}

void Refuse(const JsonView& config, const std::string& key, const std::string& problem,
            const std::string& accepted) {
  JsonView(config.json().at(key), config.file(), 0, key).Fail(problem, accepted);
}

// True where the member says something: null, false, 0 and empty containers say nothing.
bool Says(const JsonView& config, const std::string& key) {
  if (!config.Has(key)) return false;
  const Json& value = config.json().at(key);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  return !value.empty();
}

void RefuseSlidingWindow(const JsonView& config, const ModelConfig& model) {
  if (const auto layers = config.MaybeArray("layer_types")) {
    for (const JsonView& layer : *layers) {
      if (layer.AsString() != "full_attention") {
        layer.Fail("is a kind of attention that this engine does not have", "full_attention");
      }
    }
    if (std::cmp_not_equal(layers->size(), model.num_hidden_layers)) {
      ThrowBadInput({.file = config.file(),
                     .field = "layer_types",
                     .value = std::to_string(layers->size()) + " entries",
                     .problem = "must have one entry a layer",
                     .accepted = std::to_string(model.num_hidden_layers)});
    }
  }
  if (!Says(config, "sliding_window")) return;
  // Qwen files carry a window that is switched off, or that begins above their last layer.
  if (config.Has("use_sliding_window")) {
    if (!config.MaybeBool("use_sliding_window").value_or(false)) return;
    const auto first = config.MaybeInt("max_window_layers");
    if (first && *first >= model.num_hidden_layers) return;
  }
  Refuse(config, "sliding_window", "sliding window attention is not supported",
         "null, or use_sliding_window false");
}

void RefuseWhatIsNotSupported(const JsonView& config, const ModelConfig& model) {
  RefuseSlidingWindow(config, model);
  if (const auto act = config.MaybeString("hidden_act"); act && *act != "silu") {
    Refuse(config, "hidden_act", "is an activation that this engine does not have", "silu");
  }
  for (const char* key :
       {"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size"}) {
    if (Says(config, key)) Refuse(config, key, "mixture of experts is not supported", "a dense model");
  }
  for (const char* key : {"quantization_config", "final_logit_softcapping", "attn_logit_softcapping",
                          "is_encoder_decoder", "add_cross_attention", "pruned_heads"}) {
    if (Says(config, key)) Refuse(config, key, "is a feature that this engine does not have", "null");
  }
}

std::string ReadDtype(const JsonView& config) {
  const auto newer = config.MaybeString("dtype");
  const auto older = config.MaybeString("torch_dtype");
  if (newer && older && *newer != *older) {
    ThrowBadInput({.file = config.file(),
                   .field = "dtype",
                   .value = *newer,
                   .problem = "contradicts torch_dtype",
                   .accepted = *older});
  }
  return newer ? *newer : older.value_or("float32");
}

void ReadHeads(const JsonView& config, const Family& family, ModelConfig& model) {
  model.num_attention_heads = RequiredSize(config, "num_attention_heads", 65536);
  model.num_key_value_heads =
      Size(config, "num_key_value_heads",
           config.MaybeInt("num_key_value_heads").value_or(model.num_attention_heads), 65536);
  if (model.num_attention_heads % model.num_key_value_heads != 0) {
    ThrowBadInput({.file = config.file(),
                   .field = "num_key_value_heads",
                   .value = std::to_string(model.num_key_value_heads),
                   .problem = "must divide num_attention_heads",
                   .accepted = "a divisor of " + std::to_string(model.num_attention_heads)});
  }
  const std::int64_t otherwise =
      family.head_dim != 0 ? family.head_dim : model.hidden_size / model.num_attention_heads;
  model.head_dim = Size(config, "head_dim", config.MaybeInt("head_dim").value_or(otherwise), 4096);
  if (model.head_dim % 2 != 0) {
    ThrowBadInput({.file = config.file(),
                   .field = "head_dim",
                   .value = std::to_string(model.head_dim),
                   .problem = "must be even: the rotary embedding turns pairs"});
  }
}

}  // namespace

std::string KnownArchitectures() {
  std::string names;
  for (const Family& family : kFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family.architecture);
  return names;
}

ModelConfig ParseModelConfig(std::string_view text, const std::string& file) {
  const Json json = ParseJson(text, file);
  const JsonView config(json, file);
  config.RequireObject();

  const Family& family = ReadFamily(config);
  ModelConfig model;
  model.architecture = family.architecture;
  model.vocab_size = RequiredSize(config, "vocab_size");
  model.hidden_size = RequiredSize(config, "hidden_size");
  model.intermediate_size = RequiredSize(config, "intermediate_size");
  model.num_hidden_layers = RequiredSize(config, "num_hidden_layers", kMostLayers);
  model.max_position_embeddings = RequiredSize(config, "max_position_embeddings");
  ReadHeads(config, family, model);
  model.rms_norm_eps = config.MaybeDouble("rms_norm_eps").value_or(1e-6);
  if (model.rms_norm_eps < 0 || model.rms_norm_eps > 1) {
    Refuse(config, "rms_norm_eps", "is out of range", "0 to 1");
  }
  model.rope = ReadRopeConfig(config);
  model.tie_word_embeddings = config.MaybeBool("tie_word_embeddings").value_or(false);
  const bool attention_bias =
      family.attention_bias_counts && config.MaybeBool("attention_bias").value_or(false);
  model.qkv_bias = family.qkv_bias || attention_bias;
  model.output_bias = attention_bias;
  model.mlp_bias = family.has_mlp_bias && config.MaybeBool("mlp_bias").value_or(false);
  model.qk_norm = family.qk_norm;
  model.dtype = ReadDtype(config);
  RefuseWhatIsNotSupported(config, model);

  for (const auto& [key, value] : json.items()) {
    if (!Contains(kReadKeys, key) && !Contains(kHarmlessKeys, key)) model.unread_keys.push_back(key);
  }
  return model;
}

ModelConfig ReadModelConfig(const std::string& model_folder) {
  if (!std::filesystem::is_directory(model_folder)) {
    ThrowBadInput({.field = "--model",
                   .value = model_folder,
                   .problem = "is not a folder",
                   .accepted = "a Hugging Face model folder with a config.json"});
  }
  const std::string path = model_folder + "/config.json";
  return ParseModelConfig(ReadFile(path), path);
}

}  // namespace plumbline
