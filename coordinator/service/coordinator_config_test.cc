#include "coordinator/service/coordinator_config.h"

#include <cstdlib>

#include "common/status_matchers.h"

namespace solward::service {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CoordinatorConfigTest, TheShippedFileHoldsTheDefaults) {
  const char* source = std::getenv("SOLWARD_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  ASSERT_OK_AND_ASSIGN(const CoordinatorConfig shipped,
                       ReadCoordinatorConfig(std::string(source) + "/config/coordinator.yaml"));
  const CoordinatorConfig defaults;
  EXPECT_TRUE(shipped.server.listen.empty());
  EXPECT_EQ(shipped.state_dir, "");
  EXPECT_EQ(shipped.engine.workers, defaults.engine.workers);
  EXPECT_EQ(shipped.engine.max_queued, defaults.engine.max_queued);
  EXPECT_EQ(shipped.drain, defaults.drain);
  EXPECT_EQ(shipped.server.max_message_bytes, defaults.server.max_message_bytes);
  EXPECT_EQ(shipped.server.max_concurrent_streams, defaults.server.max_concurrent_streams);
  EXPECT_EQ(shipped.server.max_unix_connections, defaults.server.max_unix_connections);
  EXPECT_EQ(shipped.server.unix_socket_mode, defaults.server.unix_socket_mode);
  EXPECT_EQ(shipped.registry.heartbeat_interval, defaults.registry.heartbeat_interval);
  EXPECT_EQ(shipped.registry.expiry, defaults.registry.expiry);
  EXPECT_EQ(shipped.registry.describe_deadline, defaults.registry.describe_deadline);
  EXPECT_EQ(shipped.dispatcher.wait_for_specialist, defaults.dispatcher.wait_for_specialist);
  EXPECT_EQ(shipped.dispatcher.deadline, defaults.dispatcher.deadline);
  EXPECT_EQ(shipped.dispatcher.max_attempts, defaults.dispatcher.max_attempts);
}

TEST(CoordinatorConfigTest, WhatIsGivenIsTaken) {
  ASSERT_OK_AND_ASSIGN(const CoordinatorConfig config, ParseCoordinatorConfig(R"(
listen: ["unix:/run/a.sock", "127.0.0.1:7300"]
state_dir: /srv/solward
workers: 2
drain: 250ms
server: {unix_socket_mode: "0666"}
tls: {certificate: c.pem, private_key: k.pem}
registry: {allowed_callers: ["uid:1001"]}
dispatch: {deadline: 1h30m}
)",
                                                                              "c.yaml"));
  EXPECT_THAT(config.server.listen, ElementsAre("unix:/run/a.sock", "127.0.0.1:7300"));
  EXPECT_EQ(config.state_dir, "/srv/solward");
  EXPECT_EQ(config.engine.workers, 2);
  EXPECT_EQ(config.drain, absl::Milliseconds(250));
  EXPECT_EQ(config.server.unix_socket_mode, 0666u);
  EXPECT_EQ(config.server.tls.private_key, "k.pem");
  EXPECT_THAT(config.registry_callers, ElementsAre("uid:1001"));
  EXPECT_EQ(config.dispatcher.deadline, absl::Minutes(90));
}

TEST(CoordinatorConfigTest, AnEmptyFileGivesTheDefaults) {
  EXPECT_THAT(ParseCoordinatorConfig("", "c.yaml"), IsOk());
  EXPECT_THAT(ParseCoordinatorConfig("# nothing\n", "c.yaml"), IsOk());
}

TEST(CoordinatorConfigTest, WhatIsWrongIsNamedWithFileAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"worker: 4", "worker"},
      {"server: {max_mesage_bytes: 1}", "max_mesage_bytes"},
      {"workers: 0", "workers"},
      {"workers: 1.5", "workers"},
      {"drain: soon", "drain"},
      {"drain: -1s", "drain"},
      {"log_level: loud", "log_level"},
      {"server: {unix_socket_mode: rw}", "unix_socket_mode"},
      {"tls: {certificate: c.pem}", "private_key"},
      {"registry: {expiry: 1s}", "expiry"},
      {"listen: 127.0.0.1:7300", "listen"},
      {"- a list", "c.yaml"},
      {"a: [", "c.yaml"}};
  for (const auto& [yaml, key] : cases) {
    EXPECT_THAT(
        ParseCoordinatorConfig(yaml, "c.yaml"),
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("c.yaml"), HasSubstr(key))))
        << yaml;
  }
  EXPECT_THAT(ReadCoordinatorConfig("/no/such.yaml"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.yaml")));
}

}  // namespace
}  // namespace solward::service
