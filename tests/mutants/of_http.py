"""HTTP on both sides: runtime/http, runtime/client."""
from noticed_by import UNIT

MUTANTS = [
    # --- a request's head
    ("json line: half a character is one", "runtime/base/strings.c",
     '(*at == 0xed && at[1] > 0x9f) ||', '', [UNIT("json_line")]),
    ("json line: characters in more bytes than they need", "runtime/base/strings.c",
     '*at >= 0xc2 &&', '*at >= 0xc0 &&', [UNIT("json_line")]),
    ("json line: a half of a pair", "runtime/http/json_line.c",
     'if (first > 0xdbff || !has_second)', 'if (first > 0xdbff)', [UNIT("json_line")]),
    ("json line: a NUL in a name", "runtime/http/json_line.c", 'if (s->has_nul)', 'if (false)', [UNIT("json_line")]),
    ("json line: a name twice", "runtime/http/json_line.c", 'if (entry->object == object)', 'if (false)', [UNIT("json_line")]),
    ("json line: names of earlier lines stay", "runtime/http/json_line.c",
     'line->count = line->names_count = 0;', 'line->count = 0;', [UNIT("json_line")]),
    ("json line: any depth", "runtime/http/json_line.c", '++s->depth > JSON_LINE_DEPTH', '++s->depth > UINT32_MAX', [UNIT("json_line")]),
    ("json line: what follows it", "runtime/http/json_line.c", 'if (token != TOKEN_END)\n', 'if (false)\n', [UNIT("json_line")]),
    ("json line: integers of any size", "runtime/http/json_line.c", 's->at - s->token > DIGITS_SAFE', 'false', [UNIT("json_line")]),
    ("http: two tokens", "runtime/http/reader.c",
     "} else if (is_single(field->name) && is_repeated(head, i)) {", "} else if (!head) {", [UNIT("http_reader")]),

    # --- answers that a worker reads
    ("workers: two lengths of an answer", "runtime/client/http_answer.c",
     "                if (a->has_length || a->is_chunked)\n", "                if (false)\n", [UNIT("http_answer")]),
    ("workers: an endless head of an answer", "runtime/client/http_answer.c",
     "(is_counted && a->head_bytes + size > HTTP_ANSWER_HEAD_MAX)", "false", [UNIT("http_answer")]),
    ("workers: chunks of any size together", "runtime/client/http_answer.c",
     "        if (a->left > HTTP_ANSWER_BODY_MAX - a->body.size)\n", "        if (false)\n", [UNIT("http_answer")]),
    ("workers: any fence is believed", "runtime/client/work_json.c",
     "!work->fence || fence_parse(span_of_text(work->fence), &fence, NULL) < 0",
     "!work->fence || (fence_parse(span_of_text(work->fence), &fence, NULL), false)", [UNIT("http_answer")]),
    ("workers: a task of another handler", "runtime/client/work_json.c",
     " || strcmp(work->handler, handler) != 0", "", [UNIT("http_answer")]),
]
