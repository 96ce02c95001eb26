package quiver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	pollFor        = 30 * time.Second
	requestFor     = 10 * time.Second
	outcomeRepeats = 5 // of an outcome whose answer was lost: the fence makes a repeat harmless
)

// Work is a task that a worker has.  Its context ends when the task was cancelled or its time is over.
type Work struct {
	ID, Key, Handler       string
	Attempt, AttemptsMax   int
	Crashes                int
	SubmittedMs            int64
	FenceEpoch, FenceStart uint64
	Payload, Checkpoint    []byte
	Headers                map[string][]byte

	fence    string
	mutex    sync.Mutex
	news     map[string]any // for the next heartbeat
	followUp []map[string]any
}

// NotDone is an error of a handle function that chooses the outcome; any other error is a retry.
type NotDone struct {
	Kind  string // "reject", "retry", "later", "limited" or "unavailable"
	Why   string
	After time.Duration // with retry, later and limited: instead of the handler's setting
}

func (e *NotDone) Error() string { return e.Why }

// SetCheckpoint keeps at most 4096 bytes for the next attempt.
func (w *Work) SetCheckpoint(data []byte) {
	w.tell("checkpoint_base64", base64.StdEncoding.EncodeToString(data))
}

// SetProgress is shown by quiver status.
func (w *Work) SetProgress(done, total uint64) { w.tell("progress", []uint64{done, total}) }

func (w *Work) tell(name string, value any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.news[name] = value
}

func (w *Work) said() map[string]any {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	told := map[string]any{"fence": w.fence}
	for name, value := range w.news {
		told[name] = value
	}
	return told
}

// FollowUp is submitted if the task ends done, in the same step.
func (w *Work) FollowUp(handler, key string, payload []byte, delay time.Duration) {
	made := map[string]any{"handler": handler, "payload_base64": base64.StdEncoding.EncodeToString(payload)}
	if key != "" {
		made["key"] = key
	}
	if delay > 0 {
		made["delay"] = fmt.Sprintf("%dms", milliseconds(delay))
	}
	w.followUp = append(w.followUp, made)
}

type saidWork struct {
	ID               string            `json:"id"`
	Key              string            `json:"key"`
	Handler          string            `json:"handler"`
	Attempt          int               `json:"attempt"`
	AttemptsMax      int               `json:"attempts_max"`
	Crashes          int               `json:"crashes"`
	SubmittedMs      int64             `json:"submitted_ms"`
	Fence            string            `json:"fence"`
	Payload          string            `json:"payload"`
	PayloadBase64    []byte            `json:"payload_base64"`
	Checkpoint       string            `json:"checkpoint"`
	CheckpointBase64 []byte            `json:"checkpoint_base64"`
	Headers          map[string]string `json:"headers"`
	HeadersBase64    map[string][]byte `json:"headers_base64"`
	RemainingMs      int64             `json:"remaining_ms"`
	TTLMs            int64             `json:"ttl_ms"`
}

func (s *saidWork) work() *Work {
	made := &Work{ID: s.ID, Key: s.Key, Handler: s.Handler, Attempt: s.Attempt, AttemptsMax: s.AttemptsMax, Crashes: s.Crashes,
		SubmittedMs: s.SubmittedMs, Payload: []byte(s.Payload), Checkpoint: []byte(s.Checkpoint), Headers: map[string][]byte{},
		fence: s.Fence, news: map[string]any{}}
	if s.PayloadBase64 != nil {
		made.Payload = s.PayloadBase64
	}
	if s.CheckpointBase64 != nil {
		made.Checkpoint = s.CheckpointBase64
	}
	for name, value := range s.Headers {
		made.Headers[name] = []byte(value)
	}
	for name, value := range s.HeadersBase64 {
		made.Headers[name] = value
	}
	if parts := strings.Split(s.Fence, "."); len(parts) >= 2 {
		made.FenceEpoch, _ = strconv.ParseUint(parts[0], 10, 64)
		made.FenceStart, _ = strconv.ParseUint(parts[1], 10, 64)
	}
	return made
}

// Serve does the tasks of a handler with plugin = "remote", one after the other, until ctx ends: what handle returns is the result.
// For more at once call it in several goroutines.
func (c *Client) Serve(ctx context.Context, handler string, handle func(context.Context, *Work) ([]byte, error)) error {
	host, _ := os.Hostname()
	name := fmt.Sprintf("%.32s-%d-%d", host, os.Getpid(), time.Now().UnixNano()%1e9)
	path := "/v1/work/" + handler
	for ctx.Err() == nil {
		var told saidWork
		status, err := c.post(ctx, pollFor+requestFor, fmt.Sprintf("%s?worker=%s&wait=%ds", path, name, pollFor/time.Second), nil, &told)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		if err == nil && status == http.StatusOK {
			c.do(ctx, path+"/"+told.ID, &told, handle)
		}
	}
	return ctx.Err()
}

func (c *Client) post(ctx context.Context, limit time.Duration, target string, body any, into any) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text := []byte("{}")
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, refused("%v", err)
		}
	}
	status, answer, err := c.ask(bounded, http.MethodPost, target, http.Header{"Content-Type": {"application/json"}}, text)
	if err == nil && (status < 200 || status > 299) {
		err = failure(status, answer)
	}
	if err == nil && into != nil && status == http.StatusOK {
		err = json.Unmarshal(answer, into)
	}
	return status, err
}

func (c *Client) do(ctx context.Context, path string, told *saidWork, handle func(context.Context, *Work) ([]byte, error)) {
	work := told.work()
	own, stop := context.WithCancel(ctx)
	defer stop()
	over, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		c.keep(path, told, work, stop, over)
	}()
	outcome := outcomeOf(own, work, handle)
	close(over)
	<-quiet
	c.finish(path, work, outcome)
}

// keep sends heartbeats.  Once the time is over the task may be another worker's, so this process must not go on with it.
func (c *Client) keep(path string, told *saidWork, work *Work, stop func(), over <-chan struct{}) {
	end := time.Now().Add(time.Duration(told.RemainingMs) * time.Millisecond)
	isStopped := false
	for {
		wait := time.Duration(told.TTLMs) * time.Millisecond / 3
		if left := time.Until(end); left < wait {
			wait = left
		}
		select {
		case <-over:
			return
		case <-time.After(wait):
		}
		var said struct {
			RemainingMs int64 `json:"remaining_ms"`
			Stop        bool  `json:"stop"`
		}
		_, err := c.post(context.Background(), requestFor, path+"/heartbeat", work.said(), &said)
		var no *Refused
		switch {
		case err == nil && said.Stop:
			stop()
			isStopped = true
		case err == nil && !isStopped:
			end = time.Now().Add(time.Duration(said.RemainingMs) * time.Millisecond)
		case errors.As(err, &no) && no.Status == http.StatusConflict:
			end = time.Time{}
		}
		if time.Now().Before(end) {
			continue
		}
		select {
		case <-over:
			return
		default:
		}
		fmt.Fprintf(os.Stderr, "task %s is no longer this worker's, and its handler still runs: the process ends\n", told.ID)
		os.Exit(70)
	}
}

func outcomeOf(ctx context.Context, work *Work, handle func(context.Context, *Work) ([]byte, error)) map[string]any {
	result, err := handle(ctx, work)
	if err == nil {
		told := map[string]any{"outcome": "done"}
		if result != nil {
			told["result_base64"] = base64.StdEncoding.EncodeToString(result)
		}
		if work.followUp != nil {
			told["follow_ups"] = work.followUp
		}
		return told
	}
	told := map[string]any{"outcome": "retry", "error": err.Error()}
	var chosen *NotDone
	if errors.As(err, &chosen) {
		told["outcome"] = chosen.Kind
		if chosen.After > 0 {
			told["retry_after"] = fmt.Sprintf("%dms", milliseconds(chosen.After))
		}
	}
	if checkpoint, is := work.news["checkpoint_base64"]; is {
		told["checkpoint_base64"] = checkpoint
	}
	return told
}

func (c *Client) finish(path string, work *Work, outcome map[string]any) {
	for at := 0; at < outcomeRepeats; at++ {
		outcome["fence"] = work.fence
		_, err := c.post(context.Background(), requestFor, path+"/outcome", outcome, nil)
		var no *Refused
		switch {
		case err == nil, errors.As(err, &no) && no.Status == http.StatusConflict:
			return // 409: an earlier one was taken, or the time is over
		case errors.As(err, &no):
			fmt.Fprintf(os.Stderr, "task %s: %v\n", work.ID, err)
			if outcome["outcome"] != "done" {
				return
			}
			outcome = map[string]any{"outcome": "reject", "error": "its outcome was refused: " + err.Error()}
		default:
			time.Sleep(100 * time.Millisecond << at)
		}
	}
}
