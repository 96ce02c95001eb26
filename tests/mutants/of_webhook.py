"""The plugin webhook: where it may go, what it may tell whom, and what an answer may do to it."""
from noticed_by import UNIT

FOLDER = "plugins/webhook/"
SENT, ANSWERS, PARTS = UNIT("webhook"), UNIT("webhook_answers"), UNIT("webhook_parts")

MUTANTS = [
    ("webhook: connects to any address", FOLDER + "exchange.c",
     "x->settings->proxy ? NULL : address_refused(&address->addr, &x->settings->allowed)", "NULL", [ANSWERS]),
    ("webhook: an address in a URL is not looked at", FOLDER + "target.c",
     "const char *what = address_text_refused(text, allowed);", "const char *what = NULL;", [SENT]),
    ("webhook: IPv4 behind a translator", FOLDER + "address.c",
     "if (!memcmp(address, translated, sizeof(translated)))", "if (0)", [PARTS]),
    ("webhook: addresses that nobody was given", FOLDER + "address.c", "address[0] >> 5 != 1", "0", [PARTS]),
    ("webhook: names of this machine through a proxy", FOLDER + "target.c", "if (!what && is_proxied &&", "if (0 && is_proxied &&", [PARTS]),
    ("webhook: a user in a URL", FOLDER + "target.c", "CURLU_DISALLOW_USER", "0", [SENT, PARTS]),
    ("webhook: a secret goes along with a redirect", FOLDER + "webhook.c",
     "if (field->value.has_secret && strcmp(call->first, call->target.destination) != 0)", "if (0)", [ANSWERS]),
    ("webhook: redirects without end", FOLDER + "webhook.c", "if (call->redirects >= s->redirects)", "if (0)", [ANSWERS]),
    ("webhook: a redirect that loses the body", FOLDER + "webhook.c", "else if (!is_same_method && s->has_body)", "else if (0)", [ANSWERS]),
    ("webhook: a key that leads out of its path", FOLDER + "webhook.c",
     "if (!s->url.parts[0].is_raw && target_has_dots(w->text.data))", "if (0)", [SENT]),
    ("webhook: a header that ends its line", FOLDER + "pattern.c", "if (is_plain && has_control(value, size)) {", "if (0) {", [SENT]),
    ("webhook: values in URLs as they are", FOLDER + "pattern.c",
     "bool is_plain = part->kind == PART_TEXT || part->is_raw || use == PATTERN_HEADER;", "bool is_plain = true;", [SENT]),
    ("webhook: a secret that everybody can read", FOLDER + "secret.c", "else if (ret_seen->st_mode & 007)", "else if (0)", [SENT]),
    ("webhook: a head without end", FOLDER + "exchange.c", "if (x->head_size > HEAD_MAX) {", "if (0) {", [ANSWERS]),
    ("webhook: half a head counts", FOLDER + "exchange.c",
     "if (x->is_head_whole && !x->is_head_long && is_enough)", "if (!x->is_head_long && is_enough)", [ANSWERS]),
    ("webhook: Retry-After of any length", FOLDER + "rules.c", "a->retry_after_ms < r->retry_after_max_ms ?", "1 ?", [ANSWERS, PARTS]),
    ("webhook: all tasks try a destination at once", FOLDER + "destinations.c", "if (one->trying_ms > now_ms)", "if (0)", [PARTS]),
]
