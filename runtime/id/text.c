#include "id/text.h"

#include <string.h>

#include "id/layout.h"

static const char *alphabet(enum id_base base)
{
        switch (base) {
        case ID_BASE_32:
                return "ybndrfg8ejkmcpqxot1uwisza345h769";
        case ID_BASE_58:
                return "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ";
        case ID_BASE_10:
                break;
        }
        return "0123456789";
}

const char *id_format(uint64_t id, enum id_base base, char ret_text[ID_TEXT_MAX])
{
        const char *letters = alphabet(base);
        char text[ID_TEXT_MAX];
        size_t at = sizeof(text) - 1;
        text[at] = 0;
        do
                text[--at] = letters[id % base];
        while (id /= base);
        return memcpy(ret_text, text + at, sizeof(text) - at);
}

bool id_parse(struct span text, enum id_base base, uint64_t *ret_id)
{
        const char *letters = alphabet(base);
        uint64_t id = 0;
        if (!text.size)
                return false;
        for (size_t i = 0; i < text.size; i++) {
                const char *letter = memchr(letters, text.data[i], base);
                if (!letter || __builtin_mul_overflow(id, (uint64_t)base, &id) ||
                        __builtin_add_overflow(id, (uint64_t)(letter - letters), &id) || id >> ID_BITS)
                        return false;
        }
        *ret_id = id;
        return true;
}
