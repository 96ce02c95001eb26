"""HTTP on both sides: runtime/http, runtime/client."""
from noticed_by import UNIT

MUTANTS = [
    # --- a request's head
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
