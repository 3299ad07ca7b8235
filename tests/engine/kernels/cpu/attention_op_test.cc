#include "engine/kernels/cpu/attention_op.h"

#include <cmath>
#include <limits>
#include <memory>

#include "tests/engine/kernels/cpu/kernel_test.h"

namespace plumbline::cpu {
namespace {

class AttentionOp : public KernelTest {};
PLUMBLINE_FOR_EACH_ISA(AttentionOp);

struct Shape {
  std::int64_t q_heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t block_size = 16;
  Dtype cache = Dtype::kFloat32;
};

// A sequence's queries are its last ones.
struct Sequence {
  std::int32_t context;
  std::int32_t queries;
};

// Keys and values of whole sequences, in order; a batch pages them and picks queries.
class Model {
 public:
  Model(const Shape& shape, std::int64_t sequences, std::int64_t longest, std::uint32_t seed)
      : shape_(shape), longest_(longest), random_(seed) {
    q_ = random_.Values(sequences * longest * shape.q_heads * shape.head_dim);
    k_ = random_.Values(sequences * longest * shape.kv_heads * shape.head_dim);
    v_ = random_.Values(sequences * longest * shape.kv_heads * shape.head_dim);
    for (float& value : q_) value *= 3;  // sharp enough that a wrong mask shows
    if (shape.cache == Dtype::kBFloat16) {
      k_ = WidenAll(NarrowAll(k_));
      v_ = WidenAll(NarrowAll(v_));
    }
  }

  float Scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }
  const float* Q(std::int64_t s, std::int64_t t) const { return At(q_, s, t, shape_.q_heads); }
  const float* K(std::int64_t s, std::int64_t t) const { return At(k_, s, t, shape_.kv_heads); }
  const float* V(std::int64_t s, std::int64_t t) const { return At(v_, s, t, shape_.kv_heads); }

  // One query's output in double precision.
  std::vector<double> Expected(std::int64_t s, std::int64_t position) const {
    const std::int64_t dim = shape_.head_dim;
    const std::int64_t group = shape_.q_heads / shape_.kv_heads;
    std::vector<double> out(shape_.q_heads * dim, 0.0);
    for (std::int64_t head = 0; head < shape_.q_heads; ++head) {
      const std::int64_t kv = head / group * dim;
      std::vector<double> scores(position + 1);
      double largest = -1e300;
      for (std::int64_t t = 0; t <= position; ++t) {
        double score = 0;
        for (std::int64_t d = 0; d < dim; ++d)
          score += double{Q(s, position)[head * dim + d]} * K(s, t)[kv + d];
        scores[t] = score * Scale();
        largest = std::max(largest, scores[t]);
      }
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (std::int64_t t = 0; t <= position; ++t) {
        for (std::int64_t d = 0; d < dim; ++d) out[head * dim + d] += scores[t] / sum * V(s, t)[kv + d];
      }
    }
    return out;
  }

  const Shape& shape() const { return shape_; }

 private:
  const float* At(const std::vector<float>& of, std::int64_t s, std::int64_t t, std::int64_t heads) const {
    return of.data() + (s * longest_ + t) * heads * shape_.head_dim;
  }

  Shape shape_;
  std::int64_t longest_;
  Random random_;
  std::vector<float> q_, k_, v_;
};

// The paged form of a batch, blocks shuffled, unused memory full of NaN.
class Batch {
 public:
  // sequences[i] is the model's sequence `which[i]` (i itself when empty).
  Batch(const Model& model, std::vector<Sequence> sequences, std::vector<std::int64_t> which = {})
      : model_(model), sequences_(std::move(sequences)), which_(std::move(which)) {
    if (which_.empty()) {
      for (std::size_t i = 0; i < sequences_.size(); ++i) which_.push_back(static_cast<std::int64_t>(i));
    }
    const Shape& shape = model.shape();
    for (const Sequence& sequence : sequences_) {
      table_stride_ = std::max<std::int64_t>(table_stride_, Blocks(sequence) + 1);
      total_blocks_ += Blocks(sequence);
    }
    const std::int64_t elements = total_blocks_ * shape.kv_heads * shape.head_dim * shape.block_size;
    keys_.assign(elements + 16, std::numeric_limits<float>::quiet_NaN());
    values_ = keys_;
    tables_.assign(sequences_.size() * table_stride_, -1000000);
    starts_.push_back(0);
    std::int64_t next = total_blocks_;  // handed out backwards: tables descend
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      for (std::int64_t b = 0; b < Blocks(sequences_[i]); ++b)
        tables_[i * table_stride_ + b] = static_cast<std::int32_t>(--next);
      for (std::int64_t t = 0; t < sequences_[i].context; ++t) Fill(i, t);
      starts_.push_back(starts_.back() + sequences_[i].queries);
      contexts_.push_back(sequences_[i].context);
    }
    q_stride_ = shape.q_heads * shape.head_dim + 7;
    q_.resize(starts_.back() * q_stride_ + 1);
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      for (std::int64_t j = 0; j < sequences_[i].queries; ++j) {
        const float* from = model.Q(which_[i], Position(i, j));
        std::copy(from, from + shape.q_heads * shape.head_dim, q_.data() + (starts_[i] + j) * q_stride_ + 1);
      }
    }
  }

  std::vector<float> Run(const Kernels& kernels, int threads, bool with_scratch = true) {
    const Shape& shape = model_.shape();
    const bool wide = shape.cache == Dtype::kFloat32;
    std::vector<BFloat16> narrow_keys = NarrowAll(keys_);
    std::vector<BFloat16> narrow_values = NarrowAll(values_);
    std::int32_t longest = 0;
    for (std::int32_t context : contexts_) longest = std::max(longest, context);
    std::vector<float> scratch(
        AttentionScratchFloats(threads, longest, shape.q_heads, shape.kv_heads, shape.head_dim));
    std::vector<float> out(starts_.back() * shape.q_heads * shape.head_dim, 55);
    const AttentionArgs args{.sequences = static_cast<std::int64_t>(sequences_.size()),
                             .query_starts = starts_.data(),
                             .context_lengths = contexts_.data(),
                             .block_tables = tables_.data(),
                             .block_table_stride = table_stride_,
                             .q = q_.data() + 1,
                             .q_stride = q_stride_,
                             .q_heads = shape.q_heads,
                             .scale = model_.Scale(),
                             .cache = {wide ? static_cast<void*>(keys_.data()) : narrow_keys.data(),
                                       wide ? static_cast<void*>(values_.data()) : narrow_values.data(),
                                       shape.cache, shape.block_size, shape.kv_heads, shape.head_dim},
                             .out = out.data(),
                             .out_stride = shape.q_heads * shape.head_dim,
                             .scratch = scratch.data(),
                             .scratch_floats = with_scratch ? static_cast<std::int64_t>(scratch.size()) : 0};
    RunSliced(kernels.attention, args, threads);
    RunSliced(kernels.attention_combine, args, threads);
    return out;
  }

  void ExpectMatchesModel(const std::vector<float>& out, double tolerance) const {
    const std::int64_t width = model_.shape().q_heads * model_.shape().head_dim;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      for (std::int64_t j = 0; j < sequences_[i].queries; ++j) {
        const std::vector<double> expected = model_.Expected(which_[i], Position(i, j));
        for (std::int64_t d = 0; d < width; ++d) {
          ASSERT_NEAR(out[(starts_[i] + j) * width + d], expected[d], tolerance)
              << "sequence " << i << " query " << j << " element " << d;
        }
      }
    }
  }

 private:
  std::int64_t Blocks(const Sequence& sequence) const {
    return (sequence.context + model_.shape().block_size - 1) / model_.shape().block_size;
  }
  std::int64_t Position(std::size_t i, std::int64_t query) const {
    return sequences_[i].context - sequences_[i].queries + query;
  }
  void Fill(std::size_t i, std::int64_t t) {
    const Shape& shape = model_.shape();
    const std::int64_t block = tables_[i * table_stride_ + t / shape.block_size];
    const std::int64_t offset = t % shape.block_size;
    for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
      const std::int64_t start = (block * shape.kv_heads + head) * shape.head_dim * shape.block_size;
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        keys_[start + d * shape.block_size + offset] = model_.K(which_[i], t)[head * shape.head_dim + d];
        values_[start + offset * shape.head_dim + d] = model_.V(which_[i], t)[head * shape.head_dim + d];
      }
    }
  }

  const Model& model_;
  std::vector<Sequence> sequences_;
  std::vector<std::int64_t> which_;
  std::int64_t table_stride_ = 0;
  std::int64_t total_blocks_ = 0;
  std::int64_t q_stride_ = 0;
  std::vector<float> keys_, values_, q_;
  std::vector<std::int32_t> tables_, starts_, contexts_;
};

TEST_P(AttentionOp, MatchesDoublePrecisionOverShapes) {
  constexpr std::int64_t kBlockSizes[] = {16, 32, 128};
  std::uint32_t seed = 10;
  for (std::int64_t head_dim : {16, 32, 64, 80, 96, 112, 128, 256}) {
    for (std::int64_t group : {1, 2, 3, 8}) {
      const std::int64_t block_size = kBlockSizes[++seed % 3];
      const Dtype cache = seed % 2 == 0 ? Dtype::kFloat32 : Dtype::kBFloat16;
      SCOPED_TRACE(testing::Message()
                   << "head_dim " << head_dim << " block " << block_size << " group " << group);
      const Model model({group * 2, 2, head_dim, block_size, cache}, 4, 90, seed);
      Batch batch(model, {{37, 37}, {1, 1}, {90, 1}, {33, 9}});
      batch.ExpectMatchesModel(batch.Run(kernels(), 2), 3e-6);
    }
  }
}

TEST_P(AttentionOp, LongContextsCrossParts) {
  for (std::int64_t block_size : {16, 128}) {
    const Model model({4, 2, 32, block_size, Dtype::kFloat32}, 3, 1300, 3);
    Batch batch(model, {{1300, 9}, {512, 1}, {513, 3}});
    batch.ExpectMatchesModel(batch.Run(kernels(), 2), 3e-6);
  }
}

TEST_P(AttentionOp, ResultDoesNotDependOnThreadsOrScratch) {
  const Model model({8, 2, 64, 16, Dtype::kFloat32}, 3, 1500, 4);
  Batch batch(model, {{1500, 1}, {700, 1}, {30, 4}});
  const std::vector<float> one = batch.Run(kernels(), 1);
  batch.ExpectMatchesModel(one, 3e-6);
  for (int threads : {2, 3, 5, 16}) {
    EXPECT_EQ(batch.Run(kernels(), threads), one) << threads;
    EXPECT_EQ(batch.Run(kernels(), threads, false), one) << threads << " threads, nothing cut";
  }
}

TEST_P(AttentionOp, LongDecodesOfFewSequencesAreCut) {
  // The plan itself: without this the test above could pass with nothing cut.
  const Model model({8, 2, 64, 16, Dtype::kFloat32}, 1, 1500, 4);
  const std::int32_t starts[] = {0, 1};
  const std::int32_t context = 1500;
  AttentionArgs args{.sequences = 1,
                     .query_starts = starts,
                     .context_lengths = &context,
                     .q_heads = 8,
                     .cache = {.block_size = 16, .kv_heads = 2, .head_dim = 64}};
  args.scratch_floats = AttentionScratchFloats(4, 1500, 8, 2, 64);
  EXPECT_TRUE(AttentionPlan(args, 4).cut);
  EXPECT_FALSE(AttentionPlan(args, 1).cut);
  args.scratch_floats = 0;
  EXPECT_FALSE(AttentionPlan(args, 4).cut);
}

TEST_P(AttentionOp, ChunkedAndDecodedQueriesEqualTheWholePromptBitForBit) {
  const Model model({6, 2, 80, 32, Dtype::kFloat32}, 2, 600, 5);
  const std::int64_t width = 6 * 80;
  const std::vector<float> whole = Batch(model, {{600, 600}, {64, 64}}).Run(kernels(), 2);
  for (std::int32_t chunk : {1, 7, 64, 333}) {
    for (std::int32_t end : {600, 599, 513, 511, 130, 64}) {
      if (end < chunk) continue;
      const std::vector<float> part = Batch(model, {{end, chunk}, {5, 5}}).Run(kernels(), 3);
      for (std::int64_t i = 0; i < chunk * width; ++i) {
        ASSERT_EQ(part[i], whole[(end - chunk) * width + i]) << "chunk " << chunk << " to " << end;
      }
    }
  }
}

TEST_P(AttentionOp, NeighboursInTheBatchDoNotMatter) {
  const Model model({4, 4, 48, 16, Dtype::kBFloat16}, 3, 200, 6);
  const std::int64_t width = 4 * 48;
  const std::vector<float> alone = Batch(model, {{200, 5}}, {1}).Run(kernels(), 1);
  const std::vector<float> together = Batch(model, {{60, 60}, {200, 5}, {7, 1}}, {0, 1, 2}).Run(kernels(), 2);
  for (std::int64_t i = 0; i < 5 * width; ++i) ASSERT_EQ(alone[i], together[60 * width + i]);
}

TEST_P(AttentionOp, GroupsUpTo64) {
  const Model model({64, 1, 16, 16, Dtype::kFloat32}, 1, 40, 7);
  Batch batch(model, {{40, 9}});
  batch.ExpectMatchesModel(batch.Run(kernels(), 2), 3e-6);
}

}  // namespace
}  // namespace plumbline::cpu
