#include "engine/simulated/model_shape.h"

namespace plumbline {
namespace {

std::int64_t MlpBytes(const ModelShape& m, const Sharding& s) {
  const std::int64_t fp = s.bytes_per_weight;
  if (m.moe()) {
    return m.hidden_size * m.num_experts * fp +
           (m.num_experts / s.ep) * 3 * m.hidden_size * m.moe_intermediate_size * fp;
  }
  const std::int64_t share = m.intermediate_size / s.tp;
  return m.hidden_size * 2 * share * fp + share * m.hidden_size * fp;
}

}  // namespace

std::int64_t WeightBytes(const ModelShape& m, const Sharding& s) {
  const std::int64_t fp = s.bytes_per_weight;
  const std::int64_t block = 2 * m.hidden_size * fp +
                             m.hidden_size * ((m.q_size() + 2 * m.kv_size()) / s.tp) * fp +
                             (m.q_size() / s.tp) * m.hidden_size * fp + MlpBytes(m, s);
  return (m.vocab_size / s.tp) * m.hidden_size * fp + (m.num_layers / s.pp) * block + m.hidden_size * fp +
         m.hidden_size * (m.vocab_size / s.tp) * fp;
}

std::int64_t LayerWeightBytes(const ModelShape& m, const Sharding& s, const std::string& layer) {
  const std::int64_t fp = s.bytes_per_weight;
  const std::int64_t mlp_share = m.intermediate_size / s.tp;
  if (layer == "embedding") return (m.vocab_size / s.tp) * m.hidden_size * fp;
  if (layer == "layernorm" || layer == "final_layernorm") return m.hidden_size * fp;
  if (layer == "qkv_proj") return m.hidden_size * ((m.q_size() + 2 * m.kv_size()) / s.tp) * fp;
  if (layer == "qk_norm") return 2 * m.head_dim * fp;
  if (layer == "o_proj") return (m.q_size() / s.tp) * m.hidden_size * fp;
  if (layer == "gate_up_proj") return m.hidden_size * 2 * mlp_share * fp;
  if (layer == "down_proj") return mlp_share * m.hidden_size * fp;
  if (layer == "moe") return MlpBytes(m, s);
  if (layer == "lm_head") return m.hidden_size * (m.vocab_size / s.tp) * fp;
  return 0;
}

}  // namespace plumbline
