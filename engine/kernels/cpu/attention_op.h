#pragma once

#include "engine/kernels/cpu/attention_plan.h"
#include "engine/kernels/cpu/small_ops.h"
#include "engine/kernels/cpu/tile.h"

// Attention over the paged cache in tiles of 64 tokens with a running softmax (Dao et al., FlashAttention;
// Milakov and Gimelshein, online softmax). Prompts and decodes take the same path and differ in the number of
// rows only.
namespace plumbline::cpu {

inline constexpr std::int64_t kTileTokens = 64;
inline constexpr std::int64_t kTileSixteens = kTileTokens / kLanes;

// Below any score, yet finite: a row that sees nothing of a part gets exp(score - this) = 0 without a NaN.
inline constexpr float kNoScore = -1e30f;

// A softmax not yet divided: values[r] = sum of exp(score - largest[r]) * v, sum[r] = sum of the
// exponentials.
struct PartialRows {
  alignas(64) float values[kItemRows * kMaxHeadDim];  // [rows, head_dim]
  alignas(64) float largest[kItemRows];
  alignas(64) float sum[kItemRows];
};

// to = to and from together; the order of calls is part of the result.
template <typename V>
PLUMBLINE_INLINE void MergeRow(float* to, float& to_largest, float& to_sum, const float* from,
                               float from_largest, float from_sum, std::int64_t head_dim) {
  const float largest = to_largest > from_largest ? to_largest : from_largest;
  const V keep = Exp(V::Set(to_largest - largest));
  const V add = Exp(V::Set(from_largest - largest));
  const V sum = Fma(V::Set(to_sum), keep, V::Set(from_sum) * add);
  sum.StorePart(&to_sum, 1);
  to_largest = largest;
  for (std::int64_t d = 0; d < head_dim; d += kLanes) {
    Fma(V::Load(to + d), keep, V::Load(from + d) * add).Store(to + d);
  }
}

template <typename V>
PLUMBLINE_INLINE void WriteRow(const float* values, float sum, std::int64_t head_dim, float* out) {
  const V divisor = V::Set(sum);
  for (std::int64_t d = 0; d < head_dim; d += kLanes) (V::Load(values + d) / divisor).Store(out + d);
}

// One item: rows of scaled q against tiles of the cache. Row r is query r / group, q head r % group.
template <typename V, typename Element>
struct ItemAttention {
  using Table = TileTable<V, PlainStep<V, Element>>;

  const AttentionArgs& args;
  std::int64_t kv_head;
  std::int64_t group;
  std::int64_t rows;
  std::int64_t seen;  // tokens that the first query sees; the next one sees one more
  const std::int32_t* block_table;
  alignas(64) float q[kItemRows * kMaxHeadDim];
  alignas(64) float scores[kItemRows * kTileTokens];  // then their exponentials
  alignas(64) float keep[kItemRows];                  // what the tile leaves of earlier sums

  ItemAttention(const AttentionArgs& of, const AttentionItem& item, std::int64_t of_group)
      : args(of), kv_head(item.kv_head), group(of_group), rows(item.queries * of_group) {
    const std::int64_t queries = QueriesOf(args, item.sequence);
    seen = args.context_lengths[item.sequence] - queries + item.first_query + 1;
    block_table = args.block_tables + item.sequence * args.block_table_stride;
    const std::int64_t head_dim = args.cache.head_dim;
    const std::int64_t first_row = args.query_starts[item.sequence] + item.first_query;
    const V scale = V::Set(args.scale);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from =
          args.q + (first_row + r / group) * args.q_stride + (kv_head * group + r % group) * head_dim;
      for (std::int64_t d = 0; d < head_dim; d += kLanes)
        (V::Load(from + d) * scale).Store(q + r * head_dim + d);
    }
  }

  std::int64_t SeenBy(std::int64_t row) const { return seen + row / group; }
  std::int64_t SeenByAny() const { return SeenBy(rows - 1); }

  // Element 0 of the sixteen tokens from `token` on: a column of keys, or a row of values.
  std::int64_t HeadStart(std::int64_t token) const {
    const KvCache& cache = args.cache;
    const std::int64_t block = block_table[token / cache.block_size];
    return (block * cache.kv_heads + kv_head) * cache.head_dim * cache.block_size;
  }
  const Element* Keys(std::int64_t token) const {
    return static_cast<const Element*>(args.cache.keys) + HeadStart(token) + token % args.cache.block_size;
  }
  const Element* Values(std::int64_t token) const {
    return static_cast<const Element*>(args.cache.values) + HeadStart(token) +
           token % args.cache.block_size * args.cache.head_dim;
  }

  // The tokens [begin, end) of the context, begin a multiple of kPartTokens, end at most begin + kPartTokens.
  void Attend(std::int64_t begin, std::int64_t end, PartialRows& partial) {
    for (std::int64_t r = 0; r < rows; ++r) {
      partial.largest[r] = kNoScore;
      partial.sum[r] = 0;
    }
    for (std::int64_t i = 0; i < rows * args.cache.head_dim; i += kLanes) V::Zero().Store(partial.values + i);
    for (std::int64_t tile = begin; tile < end; tile += kTileTokens) {
      const std::int64_t tokens = Smaller(kTileTokens, end - tile);
      if (rows <= kPrefetchRows && tile + kTileTokens < SeenByAny()) {
        PrefetchTile(tile + kTileTokens, Smaller(kTileTokens, SeenByAny() - tile - kTileTokens));
      }
      Score(tile, tokens);
      Exponentiate(tile, tokens, partial);
      AddValues(tile, tokens, partial);
    }
  }

 private:
  // More rows than this keep the multipliers busy long enough to wait for the cache.
  static constexpr std::int64_t kPrefetchRows = 16;

  void PrefetchTile(std::int64_t token, std::int64_t tokens) const {
    const std::int64_t head_dim = args.cache.head_dim;
    constexpr std::int64_t kPerLine = 64 / static_cast<std::int64_t>(sizeof(Element));
    for (std::int64_t at = 0; at < tokens; at += kLanes) {
      const Element* values = Values(token + at);
      for (std::int64_t i = 0; i < kLanes * head_dim; i += kPerLine) Prefetch(values + i);
      if (at % kPerLine != 0 && args.cache.block_size % kPerLine == 0)
        continue;  // keys: that line is under way
      const Element* keys = Keys(token + at);
      for (std::int64_t d = 0; d < head_dim; ++d) Prefetch(keys + d * args.cache.block_size);
    }
  }

  // scores = q keys^T for the sixteens that hold the tile's tokens.
  void Score(std::int64_t tile, std::int64_t tokens) {
    const std::int64_t head_dim = args.cache.head_dim;
    const Element* keys[kTileSixteens + kMaxTileVectors];
    const int sixteens = static_cast<int>((tokens + kLanes - 1) / kLanes);
    for (int i = 0; i < kTileSixteens + kMaxTileVectors; ++i) {
      keys[i] = i < sixteens ? Keys(tile + i * kLanes) : keys[0];
    }
    const RowTiles<V> tiles(rows);
    for (std::int64_t row_tile = 0; row_tile < tiles.count; ++row_tile) {
      const std::int64_t first = tiles.Begin(row_tile);
      const auto& entry = Table::For(tiles.Begin(row_tile + 1) - first);
      for (int at = 0; at < sixteens; at += entry.vectors) {
        entry.multiply({.a = q + first * head_dim,
                        .a_stride = head_dim,
                        .count = head_dim,
                        .b = keys + at,
                        .b_stride = args.cache.block_size,
                        .segment_length = head_dim,
                        .ahead = 0,
                        .sums = scores + first * kTileTokens + at * kLanes,
                        .sums_stride = kTileTokens,
                        .used = sixteens - at,
                        .fresh = true});
      }
    }
  }

  // Scores become exponentials; tokens that a row does not see become 0 (their scores may be NaN).
  void Exponentiate(std::int64_t tile, std::int64_t tokens, PartialRows& partial) {
    const V masked = V::Set(-__builtin_inff());
    alignas(64) float largest[kItemRows];
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = scores + r * kTileTokens;
      const std::int64_t visible = Smaller(tokens, SeenBy(r) - tile);
      V most = V::Set(partial.largest[r]);
      for (std::int64_t t = 0; t < tokens; t += kLanes) {
        const V score = V::Load(row + t).First(visible - t, masked);
        score.Store(row + t);
        most = Max(most, score);
      }
      largest[r] = most.Largest();
    }
    for (std::int64_t r = 0; r < rows; r += kLanes) {
      Exp(V::Load(partial.largest + r) - V::Load(largest + r)).Store(keep + r);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = scores + r * kTileTokens;
      const V most = V::Set(largest[r]);
      V sum = V::Zero();
      for (std::int64_t t = 0; t < tokens; t += kLanes) {
        const V power = Exp(V::Load(row + t) - most);
        power.Store(row + t);
        sum = sum + power;
      }
      partial.sum[r] = partial.sum[r] * keep[r] + sum.Sum();
      partial.largest[r] = largest[r];
    }
  }

  // partial.values = partial.values * keep + exponentials times values.
  void AddValues(std::int64_t tile, std::int64_t tokens, PartialRows& partial) {
    const std::int64_t head_dim = args.cache.head_dim;
    for (std::int64_t r = 0; r < rows; ++r) {
      const V factor = V::Set(keep[r]);
      float* values = partial.values + r * head_dim;
      for (std::int64_t d = 0; d < head_dim; d += kLanes) (V::Load(values + d) * factor).Store(values + d);
    }
    const std::int64_t sixteens = (tokens + kLanes - 1) / kLanes;
    const RowTiles<V> tiles(rows);
    for (std::int64_t row_tile = 0; row_tile < tiles.count; ++row_tile) {
      const std::int64_t first = tiles.Begin(row_tile);
      const auto& entry = Table::For(tiles.Begin(row_tile + 1) - first);
      for (std::int64_t d = 0; d < head_dim; d += entry.vectors * kLanes) {
        const Element* values[kTileSixteens * kMaxTileVectors];
        const int used = static_cast<int>(Smaller(entry.vectors, (head_dim - d) / kLanes));
        for (std::int64_t i = 0; i < sixteens; ++i) {
          const Element* from = Values(tile + i * kLanes) + d;
          for (int p = 0; p < entry.vectors; ++p)
            values[i * entry.vectors + p] = from + (p < used ? p * kLanes : 0);
        }
        entry.multiply({.a = scores + first * kTileTokens,
                        .a_stride = kTileTokens,
                        .count = tokens,
                        .b = values,
                        .b_stride = head_dim,
                        .segment_length = kLanes,
                        .ahead = 0,
                        .sums = partial.values + first * head_dim + d,
                        .sums_stride = head_dim,
                        .used = used,
                        .fresh = false});
      }
    }
  }
};

// The whole context, part after part.
template <typename V, typename Element>
void AttendWhole(const AttentionArgs& args, const AttentionItem& item, std::int64_t group) {
  ItemAttention<V, Element> attention(args, item, group);
  const std::int64_t head_dim = args.cache.head_dim;
  const std::int64_t tokens = attention.SeenByAny();
  PartialRows whole;
  attention.Attend(0, Smaller(kPartTokens, tokens), whole);
  for (std::int64_t begin = kPartTokens; begin < tokens; begin += kPartTokens) {
    PartialRows part;
    attention.Attend(begin, Smaller(begin + kPartTokens, tokens), part);
    for (std::int64_t r = 0; r < attention.rows; ++r) {
      MergeRow<V>(whole.values + r * head_dim, whole.largest[r], whole.sum[r], part.values + r * head_dim,
                  part.largest[r], part.sum[r], head_dim);
    }
  }
  const std::int64_t first_row = args.query_starts[item.sequence] + item.first_query;
  for (std::int64_t r = 0; r < attention.rows; ++r) {
    float* out =
        args.out + (first_row + r / group) * args.out_stride + (item.kv_head * group + r % group) * head_dim;
    WriteRow<V>(whole.values + r * head_dim, whole.sum[r], head_dim, out);
  }
}

// One part of one decode, into scratch.
template <typename V, typename Element>
void AttendPart(const AttentionArgs& args, const AttentionItem& item, std::int64_t group) {
  ItemAttention<V, Element> attention(args, item, group);
  const std::int64_t head_dim = args.cache.head_dim;
  const std::int64_t begin = item.part * kPartTokens;
  PartialRows part;
  attention.Attend(begin, Smaller(begin + kPartTokens, attention.SeenByAny()), part);
  float* values = args.scratch + item.scratch;
  float* largest = values + group * head_dim;
  for (std::int64_t i = 0; i < group * head_dim; i += kLanes) V::Load(part.values + i).Store(values + i);
  for (std::int64_t r = 0; r < group; ++r) {
    largest[r] = part.largest[r];
    largest[group + r] = part.sum[r];
  }
}

template <typename V, typename Element>
void AttendItems(const AttentionArgs& args, int thread, int threads) {
  const AttentionPlan plan(args, threads);
  plan.ForItemsOf(thread, threads, [&](const AttentionItem& item) PLUMBLINE_INLINE_LAMBDA {
    if (item.part < 0) {
      AttendWhole<V, Element>(args, item, plan.group);
    } else {
      AttendPart<V, Element>(args, item, plan.group);
    }
  });
}

template <typename V>
void Attention(const AttentionArgs& args, int thread, int threads) {
  if (args.cache.dtype == Dtype::kFloat32) {
    AttendItems<V, float>(args, thread, threads);
  } else {
    AttendItems<V, BFloat16>(args, thread, threads);
  }
}

// Puts the parts of cut contexts together, in the order in which AttendWhole would.
template <typename V>
void AttentionCombine(const AttentionArgs& args, int thread, int threads) {
  const AttentionPlan plan(args, threads);
  if (!plan.cut) return;
  const std::int64_t group = plan.group;
  const std::int64_t head_dim = args.cache.head_dim;
  std::int64_t item_number = 0;
  plan.ForItems([&](const AttentionItem& item, std::int64_t) PLUMBLINE_INLINE_LAMBDA {
    if (item.part != 0) return;
    if (item_number++ % threads != thread) return;
    float* values = args.scratch + item.scratch;
    float* largest = values + group * head_dim;
    const std::int64_t part_floats = PartFloats(group, head_dim);
    for (std::int64_t part = 1; part < PartsOf(args, item.sequence); ++part) {
      const float* from = values + part * part_floats;
      const float* from_largest = from + group * head_dim;
      for (std::int64_t r = 0; r < group; ++r) {
        MergeRow<V>(values + r * head_dim, largest[r], largest[group + r], from + r * head_dim,
                    from_largest[r], from_largest[group + r], head_dim);
      }
    }
    float* out =
        args.out + args.query_starts[item.sequence] * args.out_stride + item.kv_head * group * head_dim;
    for (std::int64_t r = 0; r < group; ++r) {
      WriteRow<V>(values + r * head_dim, largest[group + r], head_dim, out + r * head_dim);
    }
  });
}

}  // namespace plumbline::cpu
