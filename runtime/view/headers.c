#include "view/headers.h"

#include "task/envelope.h"
#include "view/json.h"

void headers_as_json(json_t *object, struct span lines)
{
        json_t *objects[2] = { NULL };
        struct task_header header;
        while (header_next(&lines, &header)) {
                json_t **of = &objects[header.is_base64];
                json_t *name = view_json_text_span(header.name);
                if (!*of)
                        *of = json_object();
                (void)json_object_set_new(*of, json_string_value(name), view_json_text_span(header.value));
                json_decref(name);
        }
        if (objects[0])
                (void)json_object_set_new(object, "headers", objects[0]);
        if (objects[1])
                (void)json_object_set_new(object, "headers_base64", objects[1]);
}
