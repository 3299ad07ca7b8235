// The model against Hugging Face transformers: logits and greedy ids of six small checkpoints, however the
// requests are batched.

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

#include "engine/base/json.h"
#include "tests/engine/torch/engine_runs.h"

namespace plumbline {
namespace {

constexpr std::int64_t kOutputs = 16;
constexpr double kFloat32Bound = 1e-4;
// bfloat16 weights and cache have 8 bits of mantissa; logits of these models are of size 1.
constexpr double kBfloat16Bound = 0.05;

struct Reference {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::vector<TokenId> argmax_each_position;
  std::vector<float> last_logits;
  std::vector<std::vector<float>> first_logits;  // of each position
};

std::vector<float> Floats(const Json& list) {
  return list.get<std::vector<float>>();
}

std::vector<Reference> ReadReferences(const std::string& model) {
  const Json file = ReadJsonFile(NumericsFolder(model) + "/reference.json");
  std::vector<Reference> references;
  for (const Json& prompt : file.at("prompts")) {
    references.push_back(
        {prompt.at("prompt").get<std::vector<TokenId>>(), prompt.at("greedy_16").get<std::vector<TokenId>>(),
         prompt.at("argmax_each_position").get<std::vector<TokenId>>(), Floats(prompt.at("last_logits")),
         prompt.at("logits_each_position_first8").get<std::vector<std::vector<float>>>()});
  }
  return references;
}

double LargestDifference(const std::vector<float>& expected, const std::vector<float>& actual) {
  double largest = actual.size() < expected.size() ? INFINITY : 0;
  for (std::size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i]) - static_cast<double>(actual[i])));
  }
  return largest;
}

class Numerics : public testing::TestWithParam<const char*> {
 protected:
  Numerics() : references_(ReadReferences(GetParam())) {}

  std::vector<Request> Requests(RequestId first_id = 0) const {
    std::vector<Request> requests;
    for (const Reference& reference : references_) {
      requests.push_back(
          MakeRequest(first_id + static_cast<RequestId>(requests.size()), reference.prompt, kOutputs));
    }
    return requests;
  }

  // One request a round: alone.
  std::vector<std::vector<Request>> OneByOne() const {
    std::vector<std::vector<Request>> rounds;
    for (const Request& request : Requests()) rounds.push_back({request});
    return rounds;
  }

  RunResult Run(const std::vector<std::vector<Request>>& rounds, const RunOptions& options = {}) const {
    return RunModel(NumericsFolder(GetParam()), rounds, options);
  }

  void ExpectReference(const RunResult& run, RequestId first_id = 0) const {
    for (std::size_t i = 0; i < references_.size(); ++i) {
      const auto id = first_id + static_cast<RequestId>(i);
      EXPECT_EQ(run.answers.at(id).ids, references_[i].greedy) << "request " << id;
      EXPECT_EQ(run.answers.at(id).reason, FinishReason::kLength);
      EXPECT_LE(LargestDifference(references_[i].last_logits, run.logits.at({id, 0})), kFloat32Bound);
    }
  }

  // The same bits for every token that came out.
  void ExpectSameLogits(const RunResult& expected, const RunResult& actual) const {
    for (const auto& [key, logits] : expected.logits) {
      EXPECT_EQ(logits, actual.logits.at(key)) << "request " << key.first << ", output " << key.second;
    }
  }

  std::vector<Reference> references_;
};

TEST_P(Numerics, WholePromptAloneMatchesTransformers) {
  ExpectReference(Run(OneByOne()));
}

TEST_P(Numerics, EveryPositionMatchesTransformers) {
  const Reference& longest = references_.back();
  std::vector<Request> prefixes;
  for (std::size_t length = 1; length <= longest.prompt.size(); ++length) {
    prefixes.push_back(
        MakeRequest(static_cast<RequestId>(length) - 1,
                    {longest.prompt.begin(), longest.prompt.begin() + static_cast<long>(length)}, 1));
  }
  const RunResult run = Run({prefixes}, {.max_num_batched_tokens = 1024});
  for (std::size_t i = 0; i < longest.prompt.size(); ++i) {
    const auto id = static_cast<RequestId>(i);
    EXPECT_EQ(run.answers.at(id).ids[0], longest.argmax_each_position[i]) << "position " << i;
    EXPECT_LE(LargestDifference(longest.first_logits[i], run.logits.at({id, 0})), kFloat32Bound);
  }
}

TEST_P(Numerics, ChunksMatch) {
  const RunResult chunked = Run(OneByOne(), {.max_num_batched_tokens = 5, .max_num_seqs = 5});
  ExpectReference(chunked);
  ExpectSameLogits(Run(OneByOne()), chunked);
}

TEST_P(Numerics, BatchedWithOthersMatches) {
  std::vector<Request> all = Requests();
  for (RequestId id = 100; id < 110; ++id) {
    std::vector<TokenId> prompt;
    for (RequestId i = 0; i < 3 * (id - 99); ++i)
      prompt.push_back(static_cast<TokenId>((id * 31 + i * 7) % 256));
    all.push_back(MakeRequest(id, prompt, 3 + id % 5));
  }
  const RunResult batched = Run({all}, {.max_num_batched_tokens = 64});
  ExpectReference(batched);
  ExpectSameLogits(Run(OneByOne()), batched);
}

TEST_P(Numerics, AfterPreemptionMatches) {
  // 7 + 16 tokens grow from one block to two: three such requests do not fit into four.
  const Reference& reference = references_[1];
  std::vector<Request> crowd;
  for (RequestId id = 0; id < 3; ++id) crowd.push_back(MakeRequest(id, reference.prompt, kOutputs));
  const RunResult run = Run({crowd}, {.num_blocks = 4});
  std::int64_t preempted = 0;
  for (const auto& [id, answer] : run.answers) {
    EXPECT_EQ(answer.ids, reference.greedy);
    EXPECT_LE(LargestDifference(reference.last_logits, run.logits.at({id, 0})), kFloat32Bound);
    preempted += answer.preempted;
  }
  EXPECT_GT(preempted, 0);
}

TEST_P(Numerics, PrefixHitsMatch) {
  const RunResult run = Run({Requests(0), Requests(10)}, {.enable_prefix_caching = true});
  ExpectReference(run, 0);
  ExpectReference(run, 10);
  EXPECT_EQ(run.answers.at(12).cached, 32);  // two blocks of the prompt of 33
}

TEST_P(Numerics, HitOnABlockOfTheSameStepMatches) {
  std::vector<Request> twins = Requests(0);
  for (const Request& request : Requests(10)) twins.push_back(request);
  const RunResult run = Run({twins}, {.enable_prefix_caching = true});
  ExpectReference(run, 0);
  ExpectReference(run, 10);
  EXPECT_EQ(run.answers.at(12).cached, 32);
}

TEST_P(Numerics, NumberOfThreadsChangesNothing) {
  ExpectSameLogits(Run({Requests()}, {.threads = 1}), Run({Requests()}, {.threads = 3}));
}

TEST_P(Numerics, Bfloat16StaysNear) {
  const RunResult run = Run(OneByOne(), {.dtype = cpu::Dtype::kBFloat16});
  for (std::size_t i = 0; i < references_.size(); ++i) {
    const double difference =
        LargestDifference(references_[i].last_logits, run.logits.at({static_cast<RequestId>(i), 0}));
    EXPECT_LE(difference, kBfloat16Bound);
    EXPECT_GT(difference, 0);
  }
}

TEST_P(Numerics, Bfloat16DoesNotDependOnTheBatch) {
  const RunOptions whole = {.dtype = cpu::Dtype::kBFloat16};
  const RunOptions chunked = {.dtype = cpu::Dtype::kBFloat16, .max_num_batched_tokens = 7, .max_num_seqs = 7};
  ExpectSameLogits(Run(OneByOne(), whole), Run({Requests()}, chunked));
}

INSTANTIATE_TEST_SUITE_P(Models, Numerics,
                         testing::Values("llama-tiny", "llama-hd32", "llama3-rope", "qwen2-tiny",
                                         "qwen3-tiny", "qwen3-tied"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace plumbline
