/* table_rows.h: macros for one row of a settings table.  For table.c and table_handler.c only. */
#ifndef QUIVER_CONFIG_TABLE_ROWS_H
#define QUIVER_CONFIG_TABLE_ROWS_H

#include "config/table.h"

#define SECOND 1000.0
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define KIB    1024.0
#define MIB    (1024 * KIB)
#define TIB    (1024 * 1024 * MIB)

/* The offset of a member; does not compile if the member has another type. */
#define AT(owner, member, member_type)                                                                                 \
        (offsetof(struct owner, member) +                                                                              \
                0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((struct owner *)0)->member), member_type)     \
                                        ? 1                                                                            \
                                        : -1]))

#define COUNT(n, owner, m, def, lo, hi, eff, h)                                                                        \
        {                                                                                                              \
                .name = (n), .type = FIELD_COUNT, .offset = AT(owner, m, uint32_t), .fallback = (def), .min = (lo),    \
                .max = (hi), .effect = EFFECT_##eff, .help = (h)                                                       \
        }
#define NUMBER(n, owner, m, def, lo, hi, eff, h)                                                                       \
        {                                                                                                              \
                .name = (n), .type = FIELD_NUMBER, .offset = AT(owner, m, double), .fallback = (def), .min = (lo),     \
                .max = (hi), .effect = EFFECT_##eff, .help = (h)                                                       \
        }
#define DURATION(n, owner, m, def, lo, hi, eff, h)                                                                     \
        {                                                                                                              \
                .name = (n), .type = FIELD_DURATION, .offset = AT(owner, m, uint64_t), .fallback = (def), .min = (lo), \
                .max = (hi), .effect = EFFECT_##eff, .help = (h)                                                       \
        }
#define SIZE(n, owner, m, def, lo, hi, eff, h)                                                                         \
        {                                                                                                              \
                .name = (n), .type = FIELD_SIZE, .offset = AT(owner, m, uint64_t), .fallback = (def), .min = (lo),     \
                .max = (hi), .effect = EFFECT_##eff, .help = (h)                                                       \
        }
#define CHOICE(n, owner, m, def, words, eff, h)                                                                        \
        {                                                                                                              \
                .name = (n), .type = FIELD_CHOICE, .offset = AT(owner, m, int), .fallback = (def), .choices = (words), \
                .effect = EFFECT_##eff, .help = (h)                                                                    \
        }
#define FLAG(n, owner, m, def, eff, h)                                                                                 \
        {                                                                                                              \
                .name = (n), .type = FIELD_FLAG, .offset = AT(owner, m, bool), .fallback = (def),                      \
                .effect = EFFECT_##eff, .help = (h)                                                                    \
        }
/* A text has no default.  `els` describes what applies without it; NULL if the text is required. */
#define TEXT(n, owner, m, els, look, eff, h)                                                                           \
        {                                                                                                              \
                .name = (n), .type = FIELD_TEXT, .offset = AT(owner, m, char *), .otherwise = (els), .check = (look),  \
                .effect = EFFECT_##eff, .help = (h)                                                                    \
        }
#define PATH(n, owner, m, def, els, eff, h)                                                                            \
        {                                                                                                              \
                .name = (n), .type = FIELD_PATH, .offset = AT(owner, m, char *), .fallback = (def),                    \
                .otherwise = (els), .effect = EFFECT_##eff, .help = (h)                                                \
        }
#define TEXTS(n, owner, m, els, look, eff, h)                                                                          \
        {                                                                                                              \
                .name = (n), .type = FIELD_STRINGS, .offset = AT(owner, m, struct strings), .otherwise = (els),        \
                .check = (look), .effect = EFFECT_##eff, .help = (h)                                                   \
        }
#define PATHS(n, owner, m, els, eff, h)                                                                                \
        {                                                                                                              \
                .name = (n), .type = FIELD_PATHS, .offset = AT(owner, m, struct strings), .otherwise = (els),          \
                .effect = EFFECT_##eff, .help = (h)                                                                    \
        }
#define URL(n, owner, m, use, els, eff, h)                                                                             \
        {                                                                                                              \
                .name = (n), .type = FIELD_URL, .offset = AT(owner, m, struct url), .url_use = (use),                  \
                .otherwise = (els), .effect = EFFECT_##eff, .help = (h)                                                \
        }
#define GROUP(n, owner, m, fields_of, h)                                                                               \
        {                                                                                                              \
                .name = (n), .type = FIELD_GROUP, .offset = offsetof(struct owner, m), .group = (fields_of),           \
                .otherwise = "its defaults", .help = (h)                                                               \
        }

#define NAMED(n, owner, m, counted, item, fields_of, eff, look, h)                                                     \
        {                                                                                                              \
                .name = (n), .type = FIELD_NAMED, .offset = AT(owner, m, struct item *),                               \
                .count_offset = AT(owner, counted, size_t), .item_size = sizeof(struct item), .group = (fields_of),    \
                .otherwise = "none", .check = (look), .effect = EFFECT_##eff, .help = (h)                              \
        }

#define TABLE(fields)                                                                                                  \
        {                                                                                                              \
                (fields), sizeof(fields) / sizeof((fields)[0])                                                         \
        }

#endif
