/* The features of a build that lacks one, "schedules": linked before the library, it takes the place of the real table.
 * tests/e2e/test_app.py runs it beside the real build. */
#include "store/app.h"

const struct store_feature store_features[] = {
        { "later", "0.2.0", "tasks whose handlers said LATER, which is counted" },
        { "limits", "0.2.0", "named limits that all hosts share" },
        { "merge", "0.2.0", "tasks that are merged while they wait" },
        { "names", "0.2.0", "keys that wait for a name instead of a time" },
        { "rooms", "0.2.0", "rooms: ordered, replayable logs of messages" },
};
const size_t store_features_count = sizeof(store_features) / sizeof(store_features[0]);
