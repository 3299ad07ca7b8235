#pragma once

#include "engine/base/json.h"
#include "engine/parallel/device_probe.h"

namespace plumbline {

// The form that `plumb_device_probe` prints, and how its reader gets the report back. The probe is a program
// of its own so that what reads it neither links CUDA nor dies with a broken driver. A report that is not of
// this form throws Error(kBadInput).
Json ToJson(const DeviceReport& report);
DeviceReport DeviceReportFromJson(const JsonView& json);

}  // namespace plumbline
