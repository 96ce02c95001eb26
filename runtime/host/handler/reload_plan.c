#include "host/handler/reload_plan.h"

const char *plan_verb_name(enum plan_verb verb)
{
        static const char *const names[] = { "unchanged", "changed in place", "added", "new generation", "removed",
                "refused", "held back" };
        return names[verb];
}

static void add_why(struct buffer *why, const char *name)
{
        buffer_printf(why, "%s%s", why->size ? ", " : "", name);
}

enum plan_verb plan_item(const struct reload_item *item, const struct rollout *rollout, const struct generation *target,
        struct buffer *why)
{
        struct config_changes changes = { 0 };
        if (item->status < 0) {
                buffer_printf(why, "%s", item->error.text);
                return PLAN_REFUSE;
        }
        if (rollout && rollout_is_bad(rollout, &item->id)) {
                buffer_printf(why, "it was rolled back, and neither the file nor its settings have changed since");
                return PLAN_HOLD_BACK;
        }
        if (!target)
                return PLAN_ADD;
        if (target->version.id.file_hash != item->id.file_hash)
                add_why(why, "file");
        config_compare_handlers(target->settings, item->handler, &changes);
        for (size_t i = 0; i < changes.count; i++)
                add_why(why, changes.items[i].name);
        size_t count = changes.count;
        config_changes_free(&changes);
        if (!generation_is_same(&target->version.id, &item->id))
                return PLAN_REPLACE;
        return count ? PLAN_ADJUST : PLAN_KEEP;
}
