#include "engine/core/served_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine_testing.h"

namespace plumbline {
namespace {

using testing::HasSubstr;

std::string RefusalOf(const Request& request, const CoreEngineParts& parts = Parts()) {
  CollectingSink sink;
  return MakeServedRequest(request, sink, RequestLimits(parts.facts), parts.scheduler, parts.policy)->refusal;
}

TEST(MakeServedRequest, AcceptsWhatJustFits) {
  EXPECT_EQ(RefusalOf(MakeRequest(0, 60, 4)), "");
}

TEST(MakeServedRequest, RefusesMoreThanMaxModelLenWithTheNumbers) {
  const std::string refusal = RefusalOf(MakeRequest(0, 60, 5));
  EXPECT_THAT(refusal, HasSubstr("60 prompt + 5 output"));
  EXPECT_THAT(refusal, HasSubstr("max_model_len 64"));
}

TEST(MakeServedRequest, RefusesWhatCanNeverFitIntoTheCache) {
  CoreEngineParts parts = Parts();
  parts.scheduler.num_blocks = 5;
  EXPECT_EQ(RefusalOf(MakeRequest(0, 18, 3), parts), "") << "the last token needs no place";
  const std::string refusal = RefusalOf(MakeRequest(0, 18, 4), parts);
  EXPECT_THAT(refusal, HasSubstr("need 6 KV blocks of 4 tokens"));
  EXPECT_THAT(refusal, HasSubstr("the cache has 5"));
}

TEST(MakeServedRequest, RefusesAPromptThatNoStepCanTakeWithoutChunking) {
  CoreEngineParts parts = Parts();
  parts.scheduler.enable_chunked_prefill = false;
  EXPECT_EQ(RefusalOf(MakeRequest(0, 30, 3), parts), "");
  EXPECT_THAT(RefusalOf(MakeRequest(0, 30, 4), parts), HasSubstr("max_num_batched_tokens 32"));
}

TEST(MakeServedRequest, RefusesIdsOutsideTheVocabulary) {
  for (const TokenId bad : {-1, 1000}) {
    Request request = MakeRequest(0, 5, 4);
    request.prompt_token_ids[3] = bad;
    EXPECT_THAT(RefusalOf(request), HasSubstr(std::to_string(bad) + " at position 3"));
  }
}

TEST(MakeServedRequest, RefusesLengthsThatAreNoLengths) {
  for (const auto& [input, output] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 4}, {4, 0}, {-1, 4}, {std::int64_t{1} << 40, 4}, {4, std::int64_t{1} << 62}}) {
    Request request;
    request.input_toks = input;
    request.output_toks = output;
    EXPECT_THAT(RefusalOf(request), HasSubstr("must be 1 to"));
  }
  Request request = MakeRequest(0, 5, 4);
  request.prompt_token_ids.pop_back();
  EXPECT_THAT(RefusalOf(request), HasSubstr("4 token ids but input_toks is 5"));
}

}  // namespace
}  // namespace plumbline
