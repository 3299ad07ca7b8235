#include "engine/vllm/finished_request.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace plumbline {
namespace {

std::string Blob(const std::vector<TokenId>& ids, const std::vector<double>& stamps = {}) {
  std::string blob(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId));
  return blob.append(reinterpret_cast<const char*>(stamps.data()), stamps.size() * sizeof(double));
}

Json Message() {
  return Json{{"type", "finished"}, {"id", 7},           {"received", 10.0},
              {"queued", 10.5},     {"scheduled", 11.0}, {"first_token", 12},
              {"last_token", 14.0}, {"cached_toks", 32}, {"preemptions", 1},
              {"reason", "length"}, {"num_stamps", 0}};
}

TEST(FinishedRequest, WithoutTokenTimesTheRestComesWithTheLast) {
  const Frame frame{Message(), Blob({5, 6, 7})};
  const FinishedRequest finished(frame);
  EXPECT_EQ(finished.id(), 7);
  EXPECT_EQ(finished.received_ns(), 10 * kNsPerSecond);
  const std::vector<Event> events = finished.Events(99);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].kind, EventKind::kQueued);
  EXPECT_EQ(events[0].time_ns, 10'500'000'000);
  EXPECT_EQ(events[1].kind, EventKind::kScheduled);
  EXPECT_EQ(events[1].count, 32u);
  EXPECT_EQ(events[2].kind, EventKind::kTokens);
  EXPECT_EQ(events[2].count, 1u);
  EXPECT_EQ(events[2].time_ns, 12 * kNsPerSecond);
  EXPECT_EQ(events[2].token_ids[0], 5);
  EXPECT_EQ(events[3].count, 2u);
  EXPECT_EQ(events[3].time_ns, 14 * kNsPerSecond);
  EXPECT_EQ(events[3].token_ids[1], 7);
  EXPECT_EQ(events[4].kind, EventKind::kPreempted);
  EXPECT_EQ(events[5].kind, EventKind::kFinished);
  EXPECT_EQ(events[5].reason, FinishReason::kLength);
}

TEST(FinishedRequest, TokensOfOneStepComeTogether) {
  Json message = Message();
  message["num_stamps"] = 4;
  const Frame frame{message, Blob({1, 2, 3, 4}, {12, 13, 13, 14})};
  const FinishedRequest finished(frame);
  std::vector<std::uint32_t> counts;
  for (const Event& event : finished.Events(0)) {
    if (event.kind == EventKind::kTokens) counts.push_back(event.count);
  }
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{1, 2, 1}));
}

TEST(FinishedRequest, WhatVllmCouldNotTellIsLeftOut) {
  const Frame frame{Json{{"id", 1}, {"reason", "error"}, {"error", "EngineDeadError"}, {"num_stamps", 0}},
                    ""};
  const FinishedRequest finished(frame);
  const std::vector<Event> events = finished.Events(42);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, FinishReason::kError);
  EXPECT_EQ(events[0].text, "EngineDeadError");
  EXPECT_EQ(events[0].time_ns, 42);
}

TEST(FinishedRequest, MalformedMessagesEndTheEngine) {
  Json one_stamp = Message();
  one_stamp["num_stamps"] = 1;
  Json negative = Message();
  negative["num_stamps"] = -1;
  Json nameless = Message();
  nameless.erase("id");
  for (const Frame& frame :
       {Frame{one_stamp, Blob({1, 2}, {3.0})}, Frame{negative, Blob({1})}, Frame{nameless, Blob({1})},
        Frame{Message(), "xyz"}, Frame{one_stamp, Blob({1}, {-1.0})}}) {
    EXPECT_THROW(FinishedRequest{frame}, Error) << frame.message;
  }
}

TEST(WhyRefused, NamesTheNumbers) {
  Facts facts;
  facts.vocab_size = 100;
  facts.max_model_len = 8;
  Request request;
  request.prompt_token_ids = {1, 2, 99};
  request.output_toks = 5;
  EXPECT_EQ(WhyRefused(request, facts), "");
  request.output_toks = 6;
  EXPECT_EQ(WhyRefused(request, facts), "3 prompt and 6 output tokens exceed max_model_len 8");
  request.prompt_token_ids = {100};
  EXPECT_EQ(WhyRefused(request, facts), "token id 100 lies outside the vocabulary of 100");
  request.prompt_token_ids = {};
  EXPECT_EQ(WhyRefused(request, facts), "the prompt has no token ids");
}

}  // namespace
}  // namespace plumbline
