package quiver

// The Go client behind the protocol of tests/clients/README.md: a line of JSON asks, a line of JSON answers.  Skipped unless
// QUIVER_CONTRACT is set, since it reads standard input to its end.

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

type saidTask struct {
	Handler        string            `json:"handler"`
	Payload        []byte            `json:"payload_base64"`
	Key            string            `json:"key"`
	Lane           string            `json:"lane"`
	DelayMs        int64             `json:"delay_ms"`
	AtMs           int64             `json:"at_ms"`
	UniqueMs       int64             `json:"unique_ms"`
	Merge          bool              `json:"merge"`
	DebounceMs     int64             `json:"debounce_ms"`
	TimeoutMs      int64             `json:"timeout_ms"`
	Attempts       int               `json:"attempts"`
	Headers        map[string]string `json:"headers"`
	HeadersBase64  map[string][]byte `json:"headers_base64"`
	Traceparent    string            `json:"traceparent"`
	IdempotencyKey string            `json:"idempotency_key"`
}

func (s *saidTask) task() Task {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	made := Task{Handler: s.Handler, Payload: s.Payload, Key: s.Key, Lane: s.Lane, Delay: ms(s.DelayMs), Unique: ms(s.UniqueMs), Merge: s.Merge,
		Debounce: ms(s.DebounceMs), Timeout: ms(s.TimeoutMs), Attempts: s.Attempts, Traceparent: s.Traceparent,
		IdempotencyKey: s.IdempotencyKey, Headers: map[string][]byte{}}
	if s.AtMs != 0 {
		made.At = time.UnixMilli(s.AtMs)
	}
	for name, value := range s.Headers {
		made.Headers[name] = []byte(value)
	}
	for name, value := range s.HeadersBase64 {
		made.Headers[name] = value
	}
	return made
}

type question struct {
	Do         string
	Submit     saidTask
	Task       saidTask
	Tasks      []saidTask
	To         string
	URL, Token string
	ID         string
	WaitMs     int64 `json:"wait_ms"`
	Max        int
	Receipts   []string
	Answer     struct {
		Status int
		Body   []byte `json:"body_base64"`
	}
}

func base64OrNil(data []byte) any {
	if data == nil {
		return nil
	}
	return base64.StdEncoding.EncodeToString(data)
}

func shownError(err error) map[string]any {
	told := map[string]any{"text": err.Error()}
	var no *Refused
	var again *Retry
	switch {
	case errors.As(err, &no):
		told["error"], told["refused"] = "refused", err.Error()
		if no.ID != "" {
			told["id"] = no.ID
		}
	case errors.As(err, &again):
		told["error"] = "retry"
	default:
		told["error"] = "unknown"
	}
	return told
}

func shownSubmitted(made Submitted, err error) any {
	if err != nil {
		return shownError(err)
	}
	return map[string]any{"id": made.ID, "duplicate": made.Duplicate}
}

func shownOutcome(made Outcome, err error) any {
	if err != nil {
		return shownError(err)
	}
	told := map[string]any{"outcome": made.State, "id": made.ID, "reason": made.Reason, "error_text": made.Error}
	if made.State == "done" {
		told["result_base64"] = base64OrNil(made.Result)
	}
	return told
}

func shownDocument(told map[string]any, err error) any {
	if err != nil {
		return shownError(err)
	}
	return told
}

func encoded(task Task) any {
	target, fields, err := task.request(0)
	if err != nil {
		return shownError(err)
	}
	shown := map[string]string{}
	for name, values := range fields {
		if name != "Content-Type" {
			shown[strings.ToLower(name)] = values[0]
		}
	}
	line, err := task.line()
	if err != nil {
		return shownError(err)
	}
	return map[string]any{"request": map[string]any{"target": target, "fields": shown,
		"body_base64": base64.StdEncoding.EncodeToString(task.Payload)}, "line": json.RawMessage(line)}
}

func answered(client **Client, q *question) any {
	ctx := context.Background()
	switch q.Do {
	case "encode":
		return encoded(q.Submit.task())
	case "answer":
		if q.To == "call" {
			return shownOutcome(readOutcome(q.Answer.Status, q.Answer.Body))
		}
		return shownSubmitted(readSubmitted(q.Answer.Status, q.Answer.Body))
	case "open":
		opened, err := Open(q.URL, q.Token)
		if err != nil {
			return shownError(err)
		}
		*client = opened
		return map[string]any{}
	case "submit":
		return shownSubmitted((*client).Submit(ctx, q.Task.task()))
	case "submit_many":
		tasks := make([]Task, len(q.Tasks))
		for i := range tasks {
			tasks[i] = q.Tasks[i].task()
		}
		told := []any{}
		for _, one := range (*client).SubmitMany(ctx, tasks) {
			told = append(told, shownSubmitted(one.Submitted, one.Err))
		}
		return told
	case "call":
		return shownOutcome((*client).Call(ctx, q.Task.task(), time.Duration(q.WaitMs)*time.Millisecond))
	case "wait":
		return shownOutcome((*client).Wait(ctx, q.ID, time.Duration(q.WaitMs)*time.Millisecond))
	case "cancel":
		return shownDocument((*client).Cancel(ctx, q.ID))
	case "task":
		return shownDocument((*client).Task(ctx, q.ID))
	case "results":
		results, err := (*client).Results(ctx, q.Max, 0)
		if err != nil {
			return shownError(err)
		}
		told := []any{}
		for _, one := range results {
			told = append(told, map[string]any{"receipt": one.Receipt, "id": one.ID, "key": one.Key, "handler": one.Handler,
				"data_base64": base64.StdEncoding.EncodeToString(one.Data)})
		}
		return told
	}
	committed, others, err := (*client).Commit(ctx, q.Receipts)
	return shownDocument(map[string]any{"committed": committed, "refused": others}, err)
}

func TestContract(t *testing.T) {
	if os.Getenv("QUIVER_CONTRACT") == "" {
		t.Skip("QUIVER_CONTRACT is not set")
	}
	var client *Client
	in := bufio.NewReaderSize(os.Stdin, 1<<24)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		told, err := json.Marshal(answered(&client, &q))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s\n", told)
	}
}
