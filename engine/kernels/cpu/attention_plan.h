#pragma once

#include "engine/kernels/cpu/inlining.h"
#include "engine/kernels/cpu/kernels.h"

// How a batch's attention is divided among threads. Every thread walks through the same plan and picks its
// own items, so that nothing is shared while it runs.
namespace plumbline::cpu {

// Contexts are summed in parts of this many tokens that start at multiples of it, cut or not: the order of
// the sums is the same on any number of threads.
inline constexpr std::int64_t kPartTokens = 512;

// Rows (queries times the q heads of a kv head) that one item holds at most, for groups up to 64.
inline constexpr std::int64_t kItemRows = 64;

// Some queries of a sequence with all q heads of one kv head, against the whole context or one part of it.
struct AttentionItem {
  std::int64_t sequence;
  std::int64_t kv_head;
  std::int64_t first_query;  // of the sequence's
  std::int64_t queries;
  std::int64_t part;     // -1: the whole context
  std::int64_t scratch;  // with a part: where its result goes, in floats
};

PLUMBLINE_INLINE std::int64_t QueriesOf(const AttentionArgs& args, std::int64_t sequence) {
  return args.query_starts[sequence + 1] - args.query_starts[sequence];
}

PLUMBLINE_INLINE std::int64_t PartsOf(const AttentionArgs& args, std::int64_t sequence) {
  return (args.context_lengths[sequence] + kPartTokens - 1) / kPartTokens;
}

// A part's result in scratch: for each q head of the group its values, the largest score, and the sum of
// exponentials.
PLUMBLINE_INLINE std::int64_t PartFloats(std::int64_t group, std::int64_t head_dim) {
  return group * (head_dim + 2);
}

struct AttentionPlan {
  const AttentionArgs& args;
  std::int64_t group;
  std::int64_t queries_per_item;
  bool cut;  // decodes whose context has several parts are cut into them

  PLUMBLINE_INLINE AttentionPlan(const AttentionArgs& of, int threads)
      : args(of),
        group(of.q_heads / of.cache.kv_heads),
        queries_per_item(Larger(1, kItemRows / group)),
        cut(false) {
    std::int64_t items = 0;
    std::int64_t scratch = 0;
    for (std::int64_t s = 0; s < args.sequences; ++s) {
      const std::int64_t tiles = (QueriesOf(args, s) + queries_per_item - 1) / queries_per_item;
      items += tiles * args.cache.kv_heads;
      if (HasParts(s))
        scratch += PartsOf(args, s) * args.cache.kv_heads * PartFloats(group, args.cache.head_dim);
    }
    cut = threads > 1 && items < 4 * threads && scratch > 0 && scratch <= args.scratch_floats;
  }

  PLUMBLINE_INLINE bool HasParts(std::int64_t sequence) const {
    return QueriesOf(args, sequence) == 1 && args.context_lengths[sequence] > kPartTokens;
  }

  // Calls body(item, cost) for all items in a fixed order. The cost is in rows times tokens; a decode reads
  // as much of the cache as four rows would keep busy.
  template <typename Body>
  PLUMBLINE_INLINE void ForItems(Body body) const {
    const std::int64_t part_floats = PartFloats(group, args.cache.head_dim);
    std::int64_t scratch = 0;
    for (std::int64_t s = 0; s < args.sequences; ++s) {
      const std::int64_t queries = QueriesOf(args, s);
      const std::int64_t context = args.context_lengths[s];
      for (std::int64_t head = 0; head < args.cache.kv_heads; ++head) {
        if (cut && HasParts(s)) {
          for (std::int64_t part = 0; part < PartsOf(args, s); ++part, scratch += part_floats) {
            const std::int64_t tokens = Smaller(kPartTokens, context - part * kPartTokens);
            body(AttentionItem{s, head, 0, 1, part, scratch}, tokens * Larger(group, 4));
          }
          continue;
        }
        for (std::int64_t first = 0; first < queries; first += queries_per_item) {
          const std::int64_t count = Smaller(queries_per_item, queries - first);
          const std::int64_t seen = context - queries + first + count;
          body(AttentionItem{s, head, first, count, -1, 0}, seen * Larger(count * group, 4));
        }
      }
    }
  }

  // Calls body(item) for this thread's items: those whose middle lies in its share of the total cost.
  template <typename Body>
  PLUMBLINE_INLINE void ForItemsOf(int thread, int threads, Body body) const {
    std::int64_t total = 0;
    ForItems([&](const AttentionItem&, std::int64_t cost) PLUMBLINE_INLINE_LAMBDA { total += cost; });
    std::int64_t before = 0;
    ForItems([&](const AttentionItem& item, std::int64_t cost) PLUMBLINE_INLINE_LAMBDA {
      const std::int64_t middle = 2 * before + cost;
      before += cost;
      if (middle * threads / (2 * total) == thread) body(item);
    });
  }
};

}  // namespace plumbline::cpu
