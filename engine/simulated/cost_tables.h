#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plumbline {

// Measured times as the profile bundle has them, and how they are looked up between and beyond the measured
// points. Times are ns; all blending is done in double, in the order that the reference
// uses, because simulated times are compared to the byte.

// Time by one key, ascending.
class LinearTable {
 public:
  LinearTable() = default;
  // At least one point; keys strictly ascending.
  LinearTable(std::vector<double> keys, std::vector<double> times_ns);

  // Linear between the neighbours, and along the last two points beyond the end; before the first key its
  // time. `key` below 1 counts as 1. At least 1 ns, truncated.
  std::int64_t Lookup(std::int64_t key) const;
  // The same before truncation.
  double Blend(std::int64_t key) const;

  bool empty() const { return keys_.empty(); }

 private:
  std::vector<double> keys_;
  std::vector<double> times_ns_;
};

// Two neighbouring places on an axis and where between them a value lies; beyond the last one t exceeds 1.
struct Bracket {
  std::size_t low = 0;
  std::size_t high = 0;
  double t = 0;
};
Bracket FindBracket(const std::vector<double>& values, double value);

// The attention kernel's time by prefill chunk, prefill context, number of decodes and their context.
class AttentionTable {
 public:
  // One measured point.
  struct Point {
    std::int64_t prefill_chunk = 0;
    std::int64_t kv_prefill = 0;
    std::int64_t n_decode = 0;
    std::int64_t kv_decode = 0;
    double time_ns = 0;
  };

  AttentionTable() = default;
  // Of equal points the first counts.
  explicit AttentionTable(const std::vector<Point>& points);

  std::int64_t Lookup(std::int64_t prefill_chunk, std::int64_t kv_prefill, std::int64_t n_decode,
                      std::int64_t kv_decode) const;

  bool empty() const { return slices_.empty(); }

 private:
  struct Row {
    double kv_prefill = 0;
    std::vector<double> kv_decode;
    std::vector<double> times_ns;
  };
  // All rows measured for one pair of prefill chunk and number of decodes.
  struct Slice {
    double prefill_chunk = 0;
    double n_decode = 0;
    std::vector<double> kv_prefill;
    std::vector<Row> rows;
  };

  static double InRow(const Row& row, double kv_decode);
  static double InSlice(const Slice& slice, double kv_prefill, double kv_decode);
  const Slice& At(std::size_t chunk, std::size_t decodes) const {
    return slices_[grid_[chunk * n_decodes_.size() + decodes]];
  }

  std::vector<double> prefill_chunks_;
  std::vector<double> n_decodes_;
  std::vector<Slice> slices_;      // by prefill chunk, then number of decodes
  std::vector<std::size_t> grid_;  // the slice of each pair; a missing one borrows the nearest
};

// The expert kernel's time by tokens and activated experts.
class MoeTable {
 public:
  MoeTable() = default;
  // One table over tokens for each number of experts; experts ascending.
  MoeTable(std::vector<double> experts, std::vector<LinearTable> by_tokens);

  std::int64_t Lookup(std::int64_t tokens, std::int64_t experts) const;

  bool empty() const { return experts_.empty(); }

 private:
  std::vector<double> experts_;
  std::vector<LinearTable> by_tokens_;
};

// How much dearer a batch is whose decodes have unequal contexts: a factor by bucket.
struct SkewTable {
  struct Axis {
    std::vector<double> bins;  // one more than labels
    std::vector<std::string> labels;
    const std::string& Label(double value) const;
  };

  double alpha_default = 0;
  Axis decodes;
  Axis rate;
  Axis longest;
  Axis prefill_context;
  // "pc=<chunk>|<decodes>|<rate>|<longest>|<prefill context>"; empty when there is no correction.
  std::map<std::string, double> alpha_by_bucket;

  double Alpha(std::int64_t prefill_chunk, std::int64_t n_decode, double skew_rate, std::int64_t kv_longest,
               std::int64_t kv_prefill) const;
};

// One tensor-parallel degree.
struct DegreeTables {
  std::map<std::string, LinearTable> dense;         // by layer
  std::map<std::string, LinearTable> per_sequence;  // by layer
  AttentionTable attention;
  MoeTable moe;
  SkewTable skew;

  // The attention time of a batch, corrected for skew.
  std::int64_t Attention(std::int64_t prefill_chunk, std::int64_t kv_prefill, std::int64_t n_decode,
                         std::int64_t decode_sum, std::int64_t decode_max, std::int64_t decode_min) const;
};

// A step of more tokens than this is bound by arithmetic, as a prompt is; a smaller one by memory.
constexpr std::int64_t kMostTokensOfASmallStep = 64;

// How a step's time is put together from the tables. The defaults are the reference simulator's, which holds
// for every bundle that does not choose.
struct CostModel {
  std::int64_t fixed_step_ns = 0;  // what a step takes before it computes anything
  // Per-sequence layers run for the requests from which a token comes out, instead of for all of the step.
  bool per_sequence_counts_sampled = false;
  // Each prefill's attention is looked up by itself and the decodes' by itself, and the times are added,
  // instead of one look-up with all prefills pooled into one.
  bool sums_attention = false;

  // What computing is multiplied by, in steps of more than kMostTokensOfASmallStep tokens and in the others:
  // the machine of this moment against the one of the profile. 1 leaves every time as it is.
  double large_step_factor = 1;
  double small_step_factor = 1;

  bool operator==(const CostModel&) const = default;
};

// What one hardware was measured to take for one model and number format.
struct ProfileBundle {
  std::string source;  // the folder, for messages
  CostModel cost_model{};
  std::map<std::int64_t, DegreeTables> by_tp;
};

}  // namespace plumbline
