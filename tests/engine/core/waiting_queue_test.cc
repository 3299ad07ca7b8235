#include "engine/core/waiting_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler_testing.h"

namespace plumbline {
namespace {

using testing::ElementsAre;

std::vector<RequestId> Order(const WaitingQueue& queue) {
  std::vector<RequestId> order;
  for (const Sequence* s = queue.front(); s != nullptr; s = s->waiting_next) order.push_back(s->id);
  return order;
}

TEST(WaitingQueue, OrdersByArrivalThenId) {
  Sequence a = MakeSequence(5, 1, 1, -1, 100);
  Sequence b = MakeSequence(2, 1, 1, -1, 200);
  Sequence c = MakeSequence(1, 1, 1, -1, 100);
  WaitingQueue queue;
  for (Sequence* s : {&a, &b, &c}) queue.InsertByArrival(*s);
  EXPECT_THAT(Order(queue), ElementsAre(1, 5, 2));
  EXPECT_EQ(queue.size(), 3);
}

TEST(WaitingQueue, PreemptedStandsInFrontWhateverItsArrival) {
  Sequence early = MakeSequence(1, 1, 1, -1, 0);
  Sequence late = MakeSequence(2, 1, 1, -1, 900);
  WaitingQueue queue;
  queue.InsertByArrival(early);
  queue.PushFront(late);
  EXPECT_THAT(Order(queue), ElementsAre(2, 1));
}

TEST(WaitingQueue, RemovesFromFrontMiddleAndBack) {
  std::vector<Sequence> sequences;
  for (RequestId id = 0; id < 5; ++id) sequences.push_back(MakeSequence(id, 1, 1));
  WaitingQueue queue;
  for (Sequence& s : sequences) queue.InsertByArrival(s);
  for (const std::size_t i : {0, 2, 4}) queue.Remove(sequences[i]);
  EXPECT_THAT(Order(queue), ElementsAre(1, 3));
  queue.Remove(sequences[1]);
  queue.Remove(sequences[3]);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0);
}

}  // namespace
}  // namespace plumbline
