#include "engine/parallel/device_report.h"

namespace plumbline {
namespace {

Json OrNull(const std::optional<std::string>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json ToJson(const DeviceReport& report) {
  Json json;
  json["schema"] = 1;
  json["built_with_cuda"] = report.built_with_cuda;
  json["cuda_version"] = OrNull(report.cuda_version);
  json["driver_version"] = OrNull(report.driver_version);
  json["nccl_version"] = OrNull(report.nccl_version);
  json["reason"] = report.reason.empty() ? Json(nullptr) : Json(report.reason);
  json["devices"] = Json::array();
  for (const Device& device : report.devices) {
    Json entry;
    entry["index"] = device.index;
    entry["name"] = device.name;
    entry["uuid"] = device.uuid;
    entry["memory_bytes"] = device.memory_bytes;
    entry["compute_capability"] = device.compute_capability;
    json["devices"].push_back(std::move(entry));
  }
  return json;
}

DeviceReport DeviceReportFromJson(const JsonView& json) {
  if (json.Int("schema") != 1) json.Fail("is a device report of an unknown schema", "schema 1");
  DeviceReport report;
  report.built_with_cuda = json.Bool("built_with_cuda");
  report.cuda_version = json.MaybeString("cuda_version");
  report.driver_version = json.MaybeString("driver_version");
  report.nccl_version = json.MaybeString("nccl_version");
  report.reason = json.MaybeString("reason").value_or("");
  for (const JsonView& entry : json.Array("devices")) {
    report.devices.push_back({.index = entry.Int("index"),
                              .name = entry.String("name"),
                              .uuid = entry.String("uuid"),
                              .memory_bytes = entry.Int("memory_bytes"),
                              .compute_capability = entry.String("compute_capability")});
  }
  if (report.devices.empty() && report.reason.empty()) json.Fail("names neither a device nor a reason");
  return report;
}

}  // namespace plumbline
