package quiver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Task is one task to be submitted.  What is zero is not set: the handler's settings apply.
type Task struct {
	Handler        string
	Payload        []byte
	Key            string
	Lane           string // "high", "normal" or "low"
	Delay          time.Duration
	At             time.Time
	Unique         time.Duration
	Merge          bool
	Debounce       time.Duration
	Timeout        time.Duration
	Attempts       int
	Headers        map[string][]byte // in small letters: HTTP knows no others
	Traceparent    string
	IdempotencyKey string
}

const numberMax = 1<<53 - 1

var (
	handlerForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	headerForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

func refused(format string, values ...any) error {
	return &Refused{Text: fmt.Sprintf(format, values...), Status: http.StatusBadRequest}
}

func hasControl(data []byte) bool {
	for _, b := range data {
		if b < 32 || b == 127 {
			return true
		}
	}
	return false
}

func isPlain(data []byte) bool {
	for _, b := range data {
		if b < 32 || b > 126 {
			return false
		}
	}
	return true
}

func checkText(name, text string) error {
	if len(text) > 255 {
		return refused("%s: has %d bytes, of 1 to 255", name, len(text))
	}
	if hasControl([]byte(text)) {
		return refused("%s: holds a control character", name)
	}
	return nil
}

// headers gives names in small letters, sorted, with the traceparent among them.
func (t *Task) headers() ([]string, map[string][]byte, error) {
	found := map[string][]byte{}
	for name, value := range t.Headers {
		small := strings.ToLower(name)
		if _, isThere := found[small]; isThere {
			return nil, nil, refused("headers: two names differ in capitals alone")
		}
		found[small] = value
	}
	if t.Traceparent != "" {
		found["traceparent"] = []byte(t.Traceparent)
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, found, nil
}

func (t *Task) checkHeaders() error {
	names, values, err := t.headers()
	if err != nil {
		return err
	}
	for _, name := range names {
		most := 1024
		if hasControl(values[name]) {
			most = 768
		}
		if !headerForm.MatchString(name) {
			return refused("header %q: has to be 1 to 64 letters, digits, _ or -", name)
		}
		if len(values[name]) > most {
			return refused("header %s: has %d bytes, of at most %d", name, len(values[name]), most)
		}
	}
	if len(names) > 32 {
		return refused("headers: %d of them, of at most 32", len(names))
	}
	return nil
}

func (t *Task) times() []struct {
	name string
	time time.Duration
} {
	return []struct {
		name string
		time time.Duration
	}{{"delay", t.Delay}, {"unique", t.Unique}, {"debounce", t.Debounce}, {"timeout", t.Timeout}}
}

// Check says what a host would refuse, before anything is sent.
func (t *Task) Check() error {
	if !handlerForm.MatchString(t.Handler) {
		return refused("handler: %q has to be a letter, then letters, digits, _ or -; at most 64", t.Handler)
	}
	if err := checkText("key", t.Key); err != nil {
		return err
	}
	if t.Lane != "" && t.Lane != "high" && t.Lane != "normal" && t.Lane != "low" {
		return refused("lane: %q is none of high, normal, low", t.Lane)
	}
	for _, one := range t.times() {
		if one.time < 0 || one.time.Milliseconds() > numberMax {
			return refused("%s: has to be a positive time, not %v", one.name, one.time)
		}
	}
	if t.Key == "" && (t.Merge || t.Debounce != 0 || t.Unique != 0) {
		return refused("unique, merge and debounce: need a key")
	}
	if t.Debounce > 24*time.Hour {
		return refused("debounce: is longer than a day")
	}
	if t.Attempts < 0 || t.Attempts > 1000 {
		return refused("attempts: %d is not from 1 to 1000", t.Attempts)
	}
	if err := checkText("idempotency_key", t.IdempotencyKey); err != nil {
		return err
	}
	return t.checkHeaders()
}

func milliseconds(d time.Duration) int64 {
	if ms := d.Round(time.Millisecond).Milliseconds(); ms > 0 {
		return ms
	}
	return 1
}

type parameter struct{ name, value string }

// parameters gives the query, in a fixed order.
func (t *Task) parameters() ([]parameter, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	var said []parameter
	put := func(name, value string) { said = append(said, parameter{name, value}) }
	if t.Key != "" {
		put("key", t.Key)
	}
	if t.Lane != "" && t.Lane != "normal" {
		put("lane", t.Lane)
	}
	for _, one := range t.times() {
		if one.time != 0 {
			put(one.name, fmt.Sprintf("%dms", milliseconds(one.time)))
		}
	}
	if !t.At.IsZero() {
		put("at", t.At.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if t.Merge {
		put("merge", "1")
	}
	if t.Attempts != 0 {
		put("attempts", strconv.Itoa(t.Attempts))
	}
	return said, nil
}

func escaped(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// request gives the target and the fields of POST /v1/tasks/HANDLER; wait is zero for none.
func (t *Task) request(wait time.Duration) (string, http.Header, error) {
	said, err := t.parameters()
	if err != nil {
		return "", nil, err
	}
	if wait != 0 {
		said = append(said, parameter{"wait", fmt.Sprintf("%dms", milliseconds(wait))})
	}
	query := make([]string, 0, len(said))
	for _, one := range said {
		query = append(query, one.name+"="+escaped(one.value))
	}
	fields := http.Header{"Content-Type": {"application/octet-stream"}}
	if t.IdempotencyKey != "" {
		fields.Set("Idempotency-Key", t.IdempotencyKey)
	}
	names, values, err := t.headers()
	if err != nil {
		return "", nil, err
	}
	for _, name := range names {
		switch value := values[name]; {
		case name == "traceparent" && !hasControl(value):
			fields["traceparent"] = []string{string(value)}
		case isPlain(value):
			fields["Quiver-Header-"+name] = []string{string(value)}
		default:
			fields["Quiver-Header64-"+name] = []string{base64.StdEncoding.EncodeToString(value)}
		}
	}
	target := "/v1/tasks/" + t.Handler
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	return target, fields, nil
}

// line gives the task as one line of POST /v1/tasks.
func (t *Task) line() ([]byte, error) {
	said, err := t.parameters()
	if err != nil {
		return nil, err
	}
	document := map[string]any{"handler": t.Handler, "payload_base64": base64.StdEncoding.EncodeToString(t.Payload)}
	for _, one := range said {
		document[one.name] = one.value
	}
	if t.Merge {
		document["merge"] = true
	}
	if t.Attempts != 0 {
		document["attempts"] = t.Attempts
	}
	if t.IdempotencyKey != "" {
		document["idempotency_key"] = t.IdempotencyKey
	}
	names, values, err := t.headers()
	if err != nil {
		return nil, err
	}
	texts, others := map[string]string{}, map[string]string{}
	for _, name := range names {
		if value := values[name]; utf8.Valid(value) && !hasControl(value) {
			texts[name] = string(value)
		} else {
			others[name] = base64.StdEncoding.EncodeToString(value)
		}
	}
	if len(texts) > 0 {
		document["headers"] = texts
	}
	if len(others) > 0 {
		document["headers_base64"] = others
	}
	return json.Marshal(document)
}
