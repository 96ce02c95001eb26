/* The features that this build knows.  One is added when hosts that do not know a new kind of record could not run
 * beside those that write it; its name never changes. */
#include "store/app.h"

const struct store_feature store_features[] = {
        { "later", "0.2.0", "tasks whose handlers said LATER, which is counted" },
        { "limits", "0.2.0", "named limits that all hosts share" },
        { "merge", "0.2.0", "tasks that are merged while they wait" },
        { "move", "0.2.0", "claimed tasks that change their lane" },
        { "names", "0.2.0", "keys that wait for a name instead of a time" },
        { "rooms", "0.2.0", "rooms: ordered, replayable logs of messages" },
        { "schedules", "0.2.0", "schedules that submit tasks at given times" },
};
const size_t store_features_count = sizeof(store_features) / sizeof(store_features[0]);
