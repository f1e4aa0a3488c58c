// How fast captures become timelines and timelines become shares.
//
//   SOLWARD_SOURCE_DIR=. build/release/bin/readers_bench --benchmark_min_time=1
//
// The torch trace stands beside a bare simdjson walk of the same bytes, which
// visits every event's category and nothing else, and beside the cutting into
// events alone.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"
#include "agents/profiling/readers/trace_event_stream.h"
#include "agents/profiling/timeline/time_model.h"

namespace solward::readers {
namespace {

std::string Capture(const std::string& name) {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/tests/data/h200/" + name;
}

// The capture without its compression, in a file of its own.
const std::string& Plain(const std::string& name) {
  static std::map<std::string, PlainFile>* files = new std::map<std::string, PlainFile>();
  auto it = files->find(name);
  if (it == files->end()) {
    absl::StatusOr<PlainFile> file = PlainFile::Make(Capture(name), {});
    if (!file.ok()) {
      std::fprintf(stderr, "%s\n", file.status().ToString().c_str());
      std::exit(1);
    }
    it = files->emplace(name, *std::move(file)).first;
  }
  return it->second.path();
}

int64_t SizeOf(const std::string& path) {
  return static_cast<int64_t>(std::ifstream(path, std::ios::ate | std::ios::binary).tellg());
}

void BareSimdjsonWalk(benchmark::State& state) {
  const auto json = simdjson::padded_string::load(Plain("launch.torch.json.gz"));
  simdjson::ondemand::parser parser;
  for (auto _ : state) {
    simdjson::ondemand::document document;
    if (parser.iterate(json.value_unsafe()).get(document) != simdjson::SUCCESS) std::abort();
    size_t kernels = 0;
    for (auto event : document["traceEvents"]) {
      std::string_view category;
      if (event["cat"].get(category) == simdjson::SUCCESS) kernels += category == "kernel";
    }
    benchmark::DoNotOptimize(kernels);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(json.value_unsafe().size()));
}
BENCHMARK(BareSimdjsonWalk)->Unit(benchmark::kMillisecond);

void CutIntoEvents(benchmark::State& state) {
  const std::string& path = Plain("launch.torch.json.gz");
  for (auto _ : state) {
    auto input = InputFile::Open(path, {});
    TraceEventStream stream(**input, {}, {});
    while (*stream.Next() != TraceEventStream::Item::kEnd) {
    }
    benchmark::DoNotOptimize(stream.events());
  }
  state.SetBytesProcessed(state.iterations() * SizeOf(path));
}
BENCHMARK(CutIntoEvents)->Unit(benchmark::kMillisecond);

void ReadTorch(benchmark::State& state, const std::string& path, int64_t bytes) {
  for (auto _ : state) {
    auto timeline = ReadTorchTrace(path, {});
    if (!timeline.ok()) std::abort();
    benchmark::DoNotOptimize(timeline);
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void TorchTracePlain(benchmark::State& state) {
  const std::string& path = Plain("launch.torch.json.gz");
  ReadTorch(state, path, SizeOf(path));
}
BENCHMARK(TorchTracePlain)->Unit(benchmark::kMillisecond);

void TorchTraceGz(benchmark::State& state) {
  ReadTorch(state, Capture("launch.torch.json.gz"), SizeOf(Plain("launch.torch.json.gz")));
}
BENCHMARK(TorchTraceGz)->Unit(benchmark::kMillisecond);

void ReadNsys(benchmark::State& state, const std::string& path) {
  int64_t rows = 0;
  for (auto _ : state) {
    auto timeline = ReadNsysSqlite(path, {});
    if (!timeline.ok()) std::abort();
    rows = 0;
    for (const timeline::Process& process : timeline->processes) {
      rows += static_cast<int64_t>(process.calls.size() + process.ranges.size());
      for (const timeline::GpuLane& lane : process.lanes) {
        rows += static_cast<int64_t>(lane.ops.size());
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * rows);
}

void NsysPlain(benchmark::State& state) { ReadNsys(state, Plain("launch.nsys.sqlite.gz")); }
BENCHMARK(NsysPlain)->Unit(benchmark::kMillisecond);

void NsysGz(benchmark::State& state) { ReadNsys(state, Capture("launch.nsys.sqlite.gz")); }
BENCHMARK(NsysGz)->Unit(benchmark::kMillisecond);

void Shares(benchmark::State& state) {
  const auto timeline = ReadNsysSqlite(Plain("launch.nsys.sqlite.gz"), {});
  for (auto _ : state) {
    auto shares = timeline::ComputeShares(*timeline, {}, {});
    benchmark::DoNotOptimize(shares);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(timeline->processes[0].lanes[0].ops.size()));
}
BENCHMARK(Shares)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace solward::readers

BENCHMARK_MAIN();
