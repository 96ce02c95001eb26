/* names.h: which names a configuration may use. */
#ifndef QUIVER_CONFIG_NAMES_H
#define QUIVER_CONFIG_NAMES_H

#include "base/error.h"

#define NAME_HANDLER_MAX 64

/* Each returns 0, or -EINVAL with a text that says what is allowed. */
int name_check_app(const char *text, struct error *error);
int name_check_handler(const char *text, struct error *error);
int name_check_host(const char *text, struct error *error);
int name_check_user(const char *text, struct error *error);
int name_check_environment(const char *text, struct error *error);
/* The `by` of a limit: "key", or "header." and the name of a header. */
int name_check_limit_by(const char *text, struct error *error);
/* ADDRESS:PORT */
int name_check_listen(const char *text, struct error *error);
/* http: or https:, without a login. */
int name_check_traces_url(const char *text, struct error *error);
/* "NAME: VALUE" of a header that is not a secret. */
int name_check_header_line(const char *text, struct error *error);
/* A point in time with its zone. */
int name_check_time(const char *text, struct error *error);
/* "address", or the number of a slot. */
int name_check_machine(const char *text, struct error *error);
int name_check_plugin(const char *text, struct error *error);

#endif
