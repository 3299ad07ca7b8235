#include "engine/simulated/cost_tables.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace plumbline {
namespace {

std::int64_t AtLeastOneNs(double time_ns) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(time_ns));
}

}  // namespace

LinearTable::LinearTable(std::vector<double> keys, std::vector<double> times_ns)
    : keys_(std::move(keys)), times_ns_(std::move(times_ns)) {}

double LinearTable::Blend(std::int64_t key) const {
  const double q = static_cast<double>(std::max<std::int64_t>(key, 1));
  const std::size_t n = keys_.size();
  if (n == 1) return times_ns_[0];
  const std::size_t i =
      static_cast<std::size_t>(std::upper_bound(keys_.begin(), keys_.end(), q) - keys_.begin());
  if (i == 0) return times_ns_[0];
  const std::size_t high = std::min(i, n - 1);
  const double x0 = keys_[high - 1];
  const double x1 = keys_[high];
  const double y0 = times_ns_[high - 1];
  const double y1 = times_ns_[high];
  const double t = (q - x0) / (x1 - x0);
  return y0 + t * (y1 - y0);
}

std::int64_t LinearTable::Lookup(std::int64_t key) const {
  return AtLeastOneNs(Blend(key));
}

Bracket FindBracket(const std::vector<double>& values, double value) {
  const std::size_t n = values.size();
  if (n == 1 || value <= values[0]) return {};
  const std::size_t i =
      static_cast<std::size_t>(std::upper_bound(values.begin(), values.end(), value) - values.begin());
  const std::size_t high = std::min(i, n - 1);
  const std::size_t low = high - 1;
  return {.low = low, .high = high, .t = (value - values[low]) / (values[high] - values[low])};
}

AttentionTable::AttentionTable(const std::vector<Point>& points) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int64_t, std::map<std::int64_t, double>>>
      sorted;
  std::set<std::int64_t> chunks;
  std::set<std::int64_t> decodes;
  for (const Point& point : points) {
    sorted[{point.prefill_chunk, point.n_decode}][point.kv_prefill].emplace(point.kv_decode, point.time_ns);
    chunks.insert(point.prefill_chunk);
    decodes.insert(point.n_decode);
  }
  for (const auto& [pair, rows] : sorted) {
    Slice slice;
    slice.prefill_chunk = static_cast<double>(pair.first);
    slice.n_decode = static_cast<double>(pair.second);
    for (const auto& [kv_prefill, times] : rows) {
      slice.kv_prefill.push_back(static_cast<double>(kv_prefill));
      Row row;
      row.kv_prefill = static_cast<double>(kv_prefill);
      for (const auto& [kv_decode, time] : times) {
        row.kv_decode.push_back(static_cast<double>(kv_decode));
        row.times_ns.push_back(time);
      }
      slice.rows.push_back(std::move(row));
    }
    slices_.push_back(std::move(slice));
  }
  prefill_chunks_.assign(chunks.begin(), chunks.end());
  n_decodes_.assign(decodes.begin(), decodes.end());
  // The slices are in lexicographic order, so the first of equal distances is the smallest pair.
  for (const double chunk : prefill_chunks_) {
    for (const double count : n_decodes_) {
      const auto distance = [&](const Slice& slice) {
        const double dc = slice.prefill_chunk - chunk;
        const double dn = slice.n_decode - count;
        return dc * dc + dn * dn;
      };
      const auto nearest =
          std::min_element(slices_.begin(), slices_.end(),
                           [&](const Slice& a, const Slice& b) { return distance(a) < distance(b); });
      grid_.push_back(static_cast<std::size_t>(nearest - slices_.begin()));
    }
  }
}

double AttentionTable::InRow(const Row& row, double kv_decode) {
  if (row.kv_decode.size() == 1) return row.times_ns[0];
  const Bracket at = FindBracket(row.kv_decode, kv_decode);
  const double low = row.times_ns[at.low];
  const double high = row.times_ns[at.high];
  return low + at.t * (high - low);
}

double AttentionTable::InSlice(const Slice& slice, double kv_prefill, double kv_decode) {
  const Bracket at = FindBracket(slice.kv_prefill, kv_prefill);
  const double low = InRow(slice.rows[at.low], kv_decode);
  if (at.low == at.high) return low;
  const double high = InRow(slice.rows[at.high], kv_decode);
  return low + at.t * (high - low);
}

std::int64_t AttentionTable::Lookup(std::int64_t prefill_chunk, std::int64_t kv_prefill,
                                    std::int64_t n_decode, std::int64_t kv_decode) const {
  const Bracket chunk = FindBracket(prefill_chunks_, static_cast<double>(prefill_chunk));
  const Bracket count = FindBracket(n_decodes_, static_cast<double>(n_decode));
  const double kp = static_cast<double>(kv_prefill);
  const double kd = static_cast<double>(kv_decode);
  const double c00 = InSlice(At(chunk.low, count.low), kp, kd);
  const double c01 = InSlice(At(chunk.low, count.high), kp, kd);
  const double c10 = InSlice(At(chunk.high, count.low), kp, kd);
  const double c11 = InSlice(At(chunk.high, count.high), kp, kd);
  const double v0 = c00 + count.t * (c01 - c00);
  const double v1 = c10 + count.t * (c11 - c10);
  return AtLeastOneNs(v0 + chunk.t * (v1 - v0));
}

MoeTable::MoeTable(std::vector<double> experts, std::vector<LinearTable> by_tokens)
    : experts_(std::move(experts)), by_tokens_(std::move(by_tokens)) {}

std::int64_t MoeTable::Lookup(std::int64_t tokens, std::int64_t experts) const {
  const double q = static_cast<double>(std::max<std::int64_t>(experts, 1));
  const std::size_t n = experts_.size();
  const std::size_t i =
      static_cast<std::size_t>(std::upper_bound(experts_.begin(), experts_.end(), q) - experts_.begin());
  if (n == 1 || i == 0) return AtLeastOneNs(by_tokens_[0].Blend(tokens));
  const std::size_t high = std::min(i, n - 1);
  const double y0 = by_tokens_[high - 1].Blend(tokens);
  const double y1 = by_tokens_[high].Blend(tokens);
  const double t = (q - experts_[high - 1]) / (experts_[high] - experts_[high - 1]);
  return AtLeastOneNs(y0 + t * (y1 - y0));
}

const std::string& SkewTable::Axis::Label(double value) const {
  for (std::size_t i = 0; i + 1 < labels.size(); ++i) {
    if (value <= bins[i + 1]) return labels[i];
  }
  return labels.back();
}

double SkewTable::Alpha(std::int64_t prefill_chunk, std::int64_t n_decode, double skew_rate,
                        std::int64_t kv_longest, std::int64_t kv_prefill) const {
  if (alpha_by_bucket.empty()) return alpha_default;
  std::string key = "pc=" + std::to_string(prefill_chunk);
  key += '|' + decodes.Label(static_cast<double>(n_decode));
  key += '|' + rate.Label(std::clamp(skew_rate, 0.0, 1.0));
  key += '|' + longest.Label(static_cast<double>(kv_longest));
  key += '|' + prefill_context.Label(static_cast<double>(kv_prefill));
  const auto found = alpha_by_bucket.find(key);
  return found == alpha_by_bucket.end() ? alpha_default : found->second;
}

std::int64_t DegreeTables::Attention(std::int64_t prefill_chunk, std::int64_t kv_prefill,
                                     std::int64_t n_decode, std::int64_t decode_sum, std::int64_t decode_max,
                                     std::int64_t decode_min) const {
  const std::int64_t mean = n_decode > 0 ? decode_sum / n_decode : 0;
  const std::int64_t at_mean = attention.Lookup(prefill_chunk, kv_prefill, n_decode, mean);
  if (n_decode <= 1 || decode_max == mean) return at_mean;
  const double skew_rate =
      static_cast<double>(mean - decode_min) / static_cast<double>(decode_max - decode_min);
  const double alpha = skew.Alpha(prefill_chunk, n_decode, skew_rate, decode_max, kv_prefill);
  if (alpha == 0) return at_mean;
  const std::int64_t at_max = attention.Lookup(prefill_chunk, kv_prefill, n_decode, decode_max);
  if (at_max <= at_mean) return at_mean;
  const double skewed = static_cast<double>(at_mean) + alpha * static_cast<double>(at_max - at_mean);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::nearbyint(skewed)));
}

}  // namespace plumbline
