#include "engine/simulated/program_builder.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace plumbline {
namespace {

const DegreeTables* TablesOf(const ProfileBundle& profile, std::int64_t tp) {
  const auto found = profile.by_tp.find(tp);
  if (found != profile.by_tp.end()) return &found->second;
  std::string known;
  for (const auto& [degree, tables] : profile.by_tp)
    known += (known.empty() ? "tp" : ", tp") + std::to_string(degree);
  ThrowBadInput({.file = profile.source,
                 .field = "tp_size",
                 .value = std::to_string(tp),
                 .problem = "was not profiled",
                 .accepted = known});
}

bool IsPlainCompute(const Op& op) {
  return op.kind == OpKind::kCompute && op.waits_for_load < 0;
}

// Makes one of computes that follow each other.
void MergeComputes(std::vector<Op>& ops) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (kept > 0 && IsPlainCompute(ops[i]) && ops[kept - 1].kind == OpKind::kCompute) {
      ops[kept - 1].amount += ops[i].amount;
    } else {
      ops[kept++] = ops[i];
    }
  }
  ops.resize(kept);
}

void MergeComputes(Program& program) {
  MergeComputes(program.block);
  if (program.block.size() == 1 && IsPlainCompute(program.block[0])) {
    Op all = program.block[0];
    all.amount *= program.repeats;
    program.before.push_back(all);
    program.block.clear();
    program.repeats = 0;
  }
  if (program.repeats == 0) {
    program.before.insert(program.before.end(), program.after.begin(), program.after.end());
    program.after.clear();
  }
  MergeComputes(program.before);
  MergeComputes(program.after);
}

}  // namespace

// Where the ops of one NPU's program go, and what they are made for.
struct ProgramBuilder::Emitter {
  const BatchFigures& figures;
  std::int64_t rank;
  std::int32_t npu;
  std::int64_t expert_ns;
  std::vector<Op>* ops;
  std::vector<Load>* loads;

  void Add(Op op) { ops->push_back(op); }
};

BatchFigures FiguresOf(const Batch& batch, const CostModel& cost_model) {
  BatchFigures figures;
  figures.total_tokens = batch.total_tokens;
  figures.sequences =
      std::max(static_cast<std::int64_t>(batch.entries.size()), batch.num_prefills + batch.num_decodes);
  figures.prefill_tokens = batch.prefill_tokens;
  figures.prefill_context = batch.prefill_context;
  figures.num_decodes = batch.num_decodes;
  figures.decode_sum = batch.decode_context_sum;
  figures.decode_max = batch.decode_context_max;
  figures.decode_min = batch.decode_context_min;
  figures.group_tokens = batch.total_tokens;
  if (cost_model.per_sequence_counts_sampled) {
    figures.sampled = std::count_if(batch.entries.begin(), batch.entries.end(),
                                    [](const BatchEntry& e) { return e.samples; });
  }
  if (cost_model.sums_attention) {
    for (const BatchEntry& entry : batch.entries) {
      if (entry.num_tokens > 1) figures.prefills.push_back({entry.num_tokens, entry.first_position});
    }
  }
  return figures;
}

ProgramBuilder::ProgramBuilder(const InstanceSpec& instance, const InstancePlan& plan,
                               const ClusterPlan& cluster)
    : instance_(instance),
      plan_(plan),
      first_cxl_device_(cluster.first_cxl_device),
      merges_computes_(cluster.fabric.only_ends_matter),
      cost_model_(instance.profile->cost_model),
      tables_(TablesOf(*instance.profile, instance.tp)),
      stable_tables_(instance.profile->by_tp.contains(1) ? &instance.profile->by_tp.at(1) : tables_) {
  const Architecture& architecture = *instance.architecture;
  prologue_ = Resolve(architecture.prologue);
  pre_attention_ = Resolve(architecture.pre_attention);
  post_attention_ = Resolve(architecture.post_attention);
  mlp_ = Resolve(instance.model->moe() ? architecture.mlp_moe : architecture.mlp_dense);
  head_ = Resolve(architecture.head);
}

std::vector<ProgramBuilder::Layer> ProgramBuilder::Resolve(const std::vector<LayerType>& layers) {
  std::vector<Layer> resolved;
  for (const LayerType& layer : layers) {
    if (layer.name == "rotary_emb" && instance_.hardware.find("TPU") != std::string::npos) continue;
    const DegreeTables& tables = layer.tp_stable ? *stable_tables_ : *tables_;
    const auto require = [&](bool there, const char* file) {
      if (there) return;
      ThrowBadInput({.file = instance_.profile->source,
                     .field = layer.name,
                     .problem = std::string("needs times in ") + file + ", which has none"});
    };
    if (layer.kind == LayerKind::kAttention) require(!tables_->attention.empty(), "attention.csv");
    if (layer.kind == LayerKind::kMoe) require(!stable_tables_->moe.empty(), "tp1/moe.csv");
    const LinearTable* table = nullptr;
    if (layer.kind == LayerKind::kDense || layer.kind == LayerKind::kPerSequence) {
      const auto& by_name = layer.kind == LayerKind::kDense ? tables.dense : tables.per_sequence;
      const auto found = by_name.find(layer.name);
      if (found == by_name.end()) {
        if (std::find(missing_layers_.begin(), missing_layers_.end(), layer.name) == missing_layers_.end()) {
          missing_layers_.push_back(layer.name);
        }
        continue;
      }
      table = &found->second;
    }
    resolved.push_back({.name = layer.name, .kind = layer.kind, .table = table});
  }
  return resolved;
}

// 0 for an attention without anything to attend to, and for sampling where nothing is sampled.
std::int64_t ProgramBuilder::LayerTime(const Layer& layer, const BatchFigures& figures) const {
  switch (layer.kind) {
    case LayerKind::kDense:
      return layer.table->Lookup(figures.total_tokens);
    case LayerKind::kPerSequence:
      if (!cost_model_.per_sequence_counts_sampled) return layer.table->Lookup(figures.sequences);
      return figures.sampled == 0 ? 0 : layer.table->Lookup(figures.sampled);
    case LayerKind::kAttention:
      return AttentionTime(figures);
    case LayerKind::kMoe:
      break;  // EmitExperts
  }
  return 0;
}

std::int64_t ProgramBuilder::AttentionTime(const BatchFigures& figures) const {
  const auto decodes_with = [&](std::int64_t prefill_tokens, std::int64_t prefill_context) {
    return tables_->Attention(prefill_tokens, prefill_context, figures.num_decodes, figures.decode_sum,
                              figures.decode_max, figures.decode_min);
  };
  if (!cost_model_.sums_attention) {
    if (figures.prefill_tokens == 0 && figures.num_decodes == 0) return 0;
    return decodes_with(figures.prefill_tokens, figures.prefill_context);
  }
  std::int64_t time = figures.num_decodes == 0 ? 0 : decodes_with(0, 0);
  for (const PrefillChunk& chunk : figures.prefills) {
    time += tables_->attention.Lookup(chunk.tokens, chunk.context, 0, 0);
  }
  return time;
}

// One time a rank that has an expert group, from the first rank on.
std::vector<std::int64_t> ProgramBuilder::ExpertTimes(const BatchFigures& figures) const {
  const ModelShape& model = *instance_.model;
  const std::vector<ExpertLoad> loads = RouteToExperts({.routing = instance_.expert_routing,
                                                        .num_experts = model.num_experts,
                                                        .experts_per_token = model.experts_per_token,
                                                        .ep = instance_.ep,
                                                        .curve = instance_.gate_curve.get()},
                                                       figures.total_tokens);
  std::vector<std::int64_t> times;
  for (std::int64_t group = 0; group < plan_.local_ep; ++group) {
    const ExpertLoad& load = loads[static_cast<std::size_t>(plan_.first_expert_group + group)];
    times.push_back(stable_tables_->moe.Lookup(load.tokens, load.experts));
  }
  return times;
}

// The remainder goes one by one to the stages before the last one, which has the head to compute.
std::int64_t ProgramBuilder::BlocksOfStage(std::int64_t stage) const {
  const std::int64_t layers = instance_.model->num_layers;
  const std::int64_t remainder = layers % instance_.pp;
  const bool extra = stage < instance_.pp - 1 && stage >= instance_.pp - 1 - remainder;
  return layers / instance_.pp + (extra ? 1 : 0);
}

namespace {

void ScaleComputes(std::vector<Op>& ops, double factor) {
  for (Op& op : ops) {
    if (op.kind != OpKind::kCompute) continue;
    op.amount = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(op.amount) * factor));
  }
}

void ScaleComputes(Program& program, double factor) {
  if (factor == 1) return;
  for (std::vector<Op>* ops : {&program.before, &program.block, &program.after}) ScaleComputes(*ops, factor);
}

}  // namespace

std::vector<std::shared_ptr<const Program>> ProgramBuilder::Build(const BatchFigures& figures) const {
  const double factor = figures.total_tokens > kMostTokensOfASmallStep ? cost_model_.large_step_factor
                                                                       : cost_model_.small_step_factor;
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<std::int64_t> expert_times;
  if (instance_.model->moe()) expert_times = ExpertTimes(figures);
  expert_times.resize(static_cast<std::size_t>(instance_.tp));  // the other ranks compute no experts
  for (std::int64_t stage = 0; stage < instance_.pp; ++stage) {
    for (std::int64_t rank = 0; rank < instance_.tp; ++rank) {
      auto program = std::make_shared<Program>(
          BuildOne(stage, rank, figures, expert_times[static_cast<std::size_t>(rank)]));
      ScaleComputes(*program, factor);
      if (merges_computes_) MergeComputes(*program);
      programs.push_back(std::move(program));
    }
  }
  if (instance_.role != Role::kPrefill) return programs;
  for (std::int32_t n = 0; n < plan_.num_npus; ++n) {
    const Program& sender = *programs[static_cast<std::size_t>(n)];
    programs.push_back(std::make_shared<Program>(BuildReceiver(sender, plan_.first_npu + n)));
  }
  return programs;
}

Program ProgramBuilder::BuildOne(std::int64_t stage, std::int64_t rank, const BatchFigures& figures,
                                 std::int64_t expert_ns) const {
  const std::int64_t hidden_bytes =
      figures.total_tokens * instance_.model->hidden_size * instance_.bytes_per_element;
  const std::int32_t npu = plan_.first_npu + static_cast<std::int32_t>(stage * instance_.tp + rank);
  const std::int32_t stage_step = static_cast<std::int32_t>(instance_.tp);
  Program program;
  Emitter out{.figures = figures,
              .rank = rank,
              .npu = npu,
              .expert_ns = expert_ns,
              .ops = &program.before,
              .loads = &program.loads};
  if (stage == 0) {
    if (cost_model_.fixed_step_ns > 0) {
      out.Add({.kind = OpKind::kCompute, .amount = cost_model_.fixed_step_ns});
    }
    out.Add({.kind = OpKind::kMemory,
             .peer = plan_.host_device,
             .amount = figures.total_tokens * instance_.bytes_per_element * 2});
    if (figures.recalled_bytes > 0) {
      program.loads.push_back(
          {.device = DeviceOf(instance_.placement.kv_recall), .bytes = figures.recalled_bytes});
      out.Add({.kind = OpKind::kCompute, .waits_for_load = 0});
    }
    EmitLayers(out, prologue_, -1);
  } else {
    out.Add({.kind = OpKind::kReceive, .peer = npu - stage_step, .amount = hidden_bytes});
  }
  const std::int64_t blocks = BlocksOfStage(stage);
  if (instance_.placement.all_on_npu()) {
    out.ops = &program.block;
    program.repeats = blocks;
    EmitBlock(out, -1);
    out.ops = &program.after;
  } else {
    std::int64_t first = 0;
    for (std::int64_t s = 0; s < stage; ++s) first += BlocksOfStage(s);
    for (std::int64_t b = 0; b < blocks; ++b) EmitBlock(out, first + b);
  }
  if (stage < instance_.pp - 1) {
    out.Add({.kind = OpKind::kSend, .peer = npu + stage_step, .amount = hidden_bytes});
    return program;
  }
  EmitLayers(out, head_, -1);
  const std::int64_t answer_bytes = figures.total_tokens * 4;
  if (instance_.role == Role::kPrefill) {
    out.Add({.kind = OpKind::kBackgroundSend, .peer = npu + plan_.num_npus, .amount = answer_bytes});
  } else {
    out.Add({.kind = OpKind::kMemory, .peer = plan_.host_device, .amount = answer_bytes});
  }
  return program;
}

// The other end of every background send.
Program ProgramBuilder::BuildReceiver(const Program& sender, std::int32_t npu) const {
  const auto receives = [npu](const std::vector<Op>& ops) {
    std::vector<Op> mirrored;
    for (const Op& op : ops) {
      if (op.kind != OpKind::kBackgroundSend) continue;
      mirrored.push_back({.kind = OpKind::kReceive, .peer = npu, .amount = op.amount});
    }
    return mirrored;
  };
  Program program;
  program.before = receives(sender.before);
  program.block = receives(sender.block);
  program.repeats = sender.repeats;
  program.after = receives(sender.after);
  return program;
}

void ProgramBuilder::EmitLayers(Emitter& out, const std::vector<Layer>& layers, std::int64_t block) const {
  const std::int64_t hidden_bytes =
      out.figures.total_tokens * instance_.model->hidden_size * instance_.bytes_per_element;
  for (const Layer& layer : layers) {
    if (layer.kind == LayerKind::kMoe) {
      EmitExperts(out, block, layer);
      continue;
    }
    const std::int64_t time = LayerTime(layer, out.figures);
    if (time == 0) continue;
    Op op{.kind = OpKind::kCompute, .amount = time};
    op.waits_for_load = AddLoad(out, block, layer.name);
    out.Add(op);
    if (instance_.tp > 1 && (layer.name == "o_proj" || layer.name == "down_proj")) {
      out.Add({.kind = OpKind::kCollective,
               .collective = Collective::kAllReduce,
               .scope = Scope::kTensor,
               .amount = hidden_bytes});
    }
    if (instance_.role == Role::kPrefill && layer.name == "qkv_proj") {
      out.Add({.kind = OpKind::kBackgroundSend,
               .peer = out.npu + plan_.num_npus,
               .amount = 2 * instance_.model->kv_size() * out.figures.total_tokens *
                         instance_.kv_bytes_per_element / instance_.tp});
    }
  }
}

// The index of the load that brings the layer's weights; -1 when they lie on the NPU.
std::int32_t ProgramBuilder::AddLoad(Emitter& out, std::int64_t block, const std::string& layer) const {
  const WeightPlace place = instance_.placement.Of(block, layer);
  if (place.kind == WeightPlace::Kind::kNpu) return -1;
  const Sharding sharding{.tp = instance_.tp,
                          .pp = instance_.pp,
                          .ep = instance_.ep,
                          .bytes_per_weight = instance_.bytes_per_element};
  const std::int64_t bytes = LayerWeightBytes(*instance_.model, sharding, layer);
  if (bytes == 0) return -1;
  out.loads->push_back({.device = DeviceOf(place), .bytes = bytes});
  return static_cast<std::int32_t>(out.loads->size()) - 1;
}

std::int32_t ProgramBuilder::DeviceOf(const WeightPlace& place) const {
  return place.kind == WeightPlace::Kind::kCxl ? first_cxl_device_ + place.cxl_device : plan_.host_device;
}

void ProgramBuilder::EmitBlock(Emitter& out, std::int64_t block) const {
  EmitLayers(out, pre_attention_, block);
  EmitLayers(out, post_attention_, block);
  EmitLayers(out, mlp_, block);
}

// Expert groups are dealt to the ranks. The first rank gathers, computes, scatters; one with a later group
// computes while it gathers; one without only takes part in the exchange.
void ProgramBuilder::EmitExperts(Emitter& out, std::int64_t block, const Layer& layer) const {
  const ModelShape& model = *instance_.model;
  const std::int32_t load = AddLoad(out, block, layer.name);
  const bool computes = out.rank < plan_.local_ep;
  const Op compute{.kind = OpKind::kCompute, .amount = out.expert_ns, .waits_for_load = load};
  if (instance_.ep == 1) {
    if (computes) out.Add(compute);
    return;
  }
  const std::int64_t group_tokens = out.figures.group_tokens;
  const std::int64_t fp = instance_.bytes_per_element;
  Op gather{.kind = OpKind::kCollective,
            .collective = Collective::kAllGather,
            .scope = Scope::kExpert,
            .amount = std::max<std::int64_t>(1, group_tokens / instance_.ep) *
                      (model.hidden_size + model.num_experts) * fp};
  if (computes && out.rank > 0) {
    gather.kind = OpKind::kCollectiveAndCompute;
    gather.compute_ns = out.expert_ns;
    gather.waits_for_load = load;
  }
  out.Add(gather);
  if (computes && out.rank == 0) out.Add(compute);
  out.Add({.kind = OpKind::kCollective,
           .collective = Collective::kReduceScatter,
           .scope = Scope::kExpert,
           .amount = group_tokens * model.hidden_size * fp});
}

}  // namespace plumbline
