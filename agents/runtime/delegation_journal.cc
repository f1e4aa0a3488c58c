#include "agents/runtime/delegation_journal.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/runtime/durable_file.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"
#include "google/rpc/status.pb.h"

namespace solward::runtime {
namespace {

// A record: the magic line, then fields as "<bytes>:<bytes of the field>\n", the
// last of which is the SHA-256 of everything before it.
constexpr absl::string_view kMagic = "solward delegation 1\n";
constexpr uint64_t kMaxRecordBytes = 96ull << 20;

void PutField(std::string& record, absl::string_view field) {
  absl::StrAppend(&record, field.size(), ":", field, "\n");
}

bool TakeField(absl::string_view& rest, std::string& field) {
  const size_t colon = rest.substr(0, 20).find(':');
  uint64_t size = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, colon), &size)) {
    return false;
  }
  rest.remove_prefix(colon + 1);
  if (size >= rest.size() || rest[size] != '\n') return false;
  field = std::string(rest.substr(0, size));
  rest.remove_prefix(size + 1);
  return true;
}

std::string SerializeStatus(const absl::Status& status) {
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(std::string(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    auto* any = wire.add_details();
    any->set_type_url(std::string(url));
    any->set_value(std::string(payload));
  });
  return wire.SerializeAsString();
}

bool ParseStatus(const std::string& text, absl::Status& status) {
  google::rpc::Status wire;
  if (!wire.ParseFromString(text)) return false;
  status = absl::Status(static_cast<absl::StatusCode>(wire.code()), wire.message());
  for (const auto& any : wire.details()) {
    status.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
  return true;
}

std::shared_ptr<Delegation> ParseRecord(absl::string_view record) {
  if (!absl::StartsWith(record, kMagic)) return nullptr;
  absl::string_view rest = record.substr(kMagic.size());
  DelegationIdentity identity;
  std::string status, response, sha256;
  const bool fields = TakeField(rest, identity.id) && TakeField(rest, identity.caller) &&
                      TakeField(rest, identity.key) && TakeField(rest, identity.request_sha256) &&
                      TakeField(rest, status) && TakeField(rest, response);
  if (!fields) return nullptr;
  const absl::string_view covered = record.substr(0, record.size() - rest.size());
  if (!TakeField(rest, sha256) || sha256 != Sha256Hex(covered) || !rest.empty()) return nullptr;
  DelegationEnd end;
  if (!ParseStatus(status, end.status) || !end.response.ParseFromString(response)) return nullptr;
  return std::make_shared<Delegation>(std::move(identity), std::move(end));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DelegationJournal>> DelegationJournal::Open(
    const std::string& folder, size_t max_entries) {
  std::unique_ptr<DelegationJournal> journal(
      new DelegationJournal(folder, std::max<size_t>(max_entries, 1)));
  absl::MutexLock lock(&journal->mutex_);
  journal->Prune();
  return journal;
}

std::string DelegationJournal::PathOf(const std::string& caller, const std::string& key) const {
  // Neither can hold a zero byte: the name says who asked and what for.
  return absl::StrCat(folder_, "/", Sha256Hex(absl::StrCat(caller, std::string(1, '\0'), key)));
}

absl::Status DelegationJournal::Write(const DelegationIdentity& identity,
                                      const DelegationEnd& end) {
  std::string record(kMagic);
  const std::array<std::string, 6> fields = {identity.id,
                                             identity.caller,
                                             identity.key,
                                             identity.request_sha256,
                                             SerializeStatus(end.status),
                                             end.response.SerializeAsString()};
  for (const std::string& field : fields) PutField(record, field);
  PutField(record, Sha256Hex(record));
  if (record.size() > kMaxRecordBytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "RESULT_TOO_LARGE",
                     absl::StrCat("a record of ", record.size(), " bytes is not journalled"));
  }
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(WriteDurably(PathOf(identity.caller, identity.key), record));
  if (++entries_ > max_entries_) Prune();
  return absl::OkStatus();
}

std::shared_ptr<Delegation> DelegationJournal::Read(const std::string& caller,
                                                    const std::string& key) {
  const std::string path = PathOf(caller, key);
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<std::string> record = ReadSmallFile(path, kMaxRecordBytes);
  if (absl::IsNotFound(record.status())) return nullptr;
  std::shared_ptr<Delegation> delegation = record.ok() ? ParseRecord(*record) : nullptr;
  if (delegation != nullptr && delegation->identity().caller == caller &&
      delegation->identity().key == key) {
    return delegation;
  }
  Log(LogLevel::kWarning, "removed a damaged record of a delegation", {{"file", path}});
  unlink(path.c_str());
  return nullptr;
}

void DelegationJournal::Prune() {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    files.emplace_back(it->last_write_time(ignored), it->path().string());
  }
  // A little below the cap, so that not every write lists the folder.
  const size_t keep = files.size() > max_entries_ ? max_entries_ - max_entries_ / 16 : files.size();
  std::sort(files.begin(), files.end(), std::greater<>());
  for (size_t i = keep; i < files.size(); ++i) unlink(files[i].second.c_str());
  entries_ = keep;
}

}  // namespace solward::runtime
