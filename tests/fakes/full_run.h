#pragma once

#include <string>
#include <vector>

#include "fixtures/record/run_record.h"
#include "fixtures/record/step_row.h"

namespace plumbline {

// A small run in which every field has a value, none of them a default.
RunRecord FullRun();
std::vector<StepRow> FullSteps();

// A sound serving run of `requests` requests that meets every rule of the judge: request i arrives and is
// queued at i * 0.1 s, is scheduled 1 ms, answered 50 ms after it, then a token every 10 ms.
RunRecord SoundRun(int requests);

// Writes the folder of a finished run through RunWriter.
void WriteRun(const std::string& folder, const RunRecord& run, const std::vector<StepRow>& steps);

}  // namespace plumbline
