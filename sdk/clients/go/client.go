package quiver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	linesAtOnce = 1000
	repeats     = 3
	answerMax   = 256 << 20
)

// Submitted is a task that is stored; Duplicate: it was stored before, under its idempotency key.
type Submitted struct {
	ID        string
	Duplicate bool
}

// Outcome is how a task ended.  State is "done", "dead", or "waiting": not within the time.  A nil Result: it has none.
type Outcome struct {
	State, ID     string
	Result        []byte
	Reason, Error string
}

// Result is one that was taken; commit its Receipt when it has been dealt with.
type Result struct {
	Receipt string `json:"receipt"`
	ID      string `json:"id"`
	Key     string `json:"key"`
	Handler string `json:"handler"`
	AtMs    int64  `json:"at_ms"`
	Data    []byte `json:"-"`
}

// Sent is what became of one task of many: its id, or the error that a single submit would have returned.
type Sent struct {
	Submitted
	Err error
}

// Client submits tasks, waits for outcomes and takes results.  Any goroutine may call it.
type Client struct {
	base, name, token string
	http              *http.Client
}

// Open gives a client of http://HOST:PORT, https://HOST:PORT, or http+unix:PATH, a host's own socket.
func Open(address, token string) (*Client, error) {
	// A host closes a connection that was idle for 60 s; one that we close sooner is never found closed by a request.
	transport := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 20 * time.Second, Proxy: http.ProxyFromEnvironment}
	made := &Client{base: strings.TrimRight(address, "/"), name: address, token: token, http: &http.Client{Transport: transport}}
	if path := strings.TrimPrefix(address, "http+unix:"); path != address {
		made.base = "http://localhost"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		return made, nil
	}
	parts, err := url.Parse(address)
	if err != nil || (parts.Scheme != "http" && parts.Scheme != "https") || parts.Host == "" {
		return nil, refused("%s: is not http://HOST:PORT, https://HOST:PORT or http+unix:PATH", address)
	}
	return made, nil
}

// Submit stores a task and returns its id.  Of the errors *Refused, *Retry and *Unknown each says whether the same call may be made again.
func (c *Client) Submit(ctx context.Context, task Task) (Submitted, error) {
	var made Submitted
	err := c.repeated(ctx, &task, 0, func(status int, body []byte) (err error) {
		made, err = readSubmitted(status, body)
		return err
	})
	return made, err
}

// Call submits a task and waits for its outcome, at most a minute.
func (c *Client) Call(ctx context.Context, task Task, wait time.Duration) (Outcome, error) {
	var made Outcome
	err := c.repeated(ctx, &task, wait, func(status int, body []byte) (err error) {
		made, err = readOutcome(status, body)
		return err
	})
	return made, err
}

// repeated sends the task; again after *Retry and *Unknown, later each time, if it has an idempotency key.
func (c *Client) repeated(ctx context.Context, task *Task, wait time.Duration, read func(int, []byte) error) error {
	target, fields, err := task.request(wait)
	if err != nil {
		return err
	}
	for at := 0; ; at++ {
		status, body, err := c.ask(ctx, http.MethodPost, target, fields, task.Payload)
		if err == nil {
			err = read(status, body)
		}
		var no *Refused
		if err == nil || errors.As(err, &no) || task.IdempotencyKey == "" || at >= repeats {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond << at):
		}
	}
}

// SubmitMany stores tasks in the given order, a thousand a request.  Once a request fails, nothing more is sent: the rest are *Retry.
func (c *Client) SubmitMany(ctx context.Context, tasks []Task) []Sent {
	said := make([]Sent, len(tasks))
	var left []int
	lines := make([][]byte, len(tasks))
	for i := range tasks {
		if lines[i], said[i].Err = tasks[i].line(); said[i].Err == nil {
			left = append(left, i)
			said[i].Err = &Retry{"an earlier task was not stored; this one was not sent"}
		}
	}
	for len(left) > 0 {
		part := left[:min(len(left), linesAtOnce)]
		left = left[len(part):]
		if !c.sendLines(ctx, part, lines, said) {
			break
		}
	}
	return said
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// sendLines reports whether to go on: not behind a line that was not stored and might be later, which would overtake it.
func (c *Client) sendLines(ctx context.Context, part []int, lines [][]byte, said []Sent) bool {
	var body bytes.Buffer
	for _, at := range part {
		body.Write(lines[at])
		body.WriteByte('\n')
	}
	status, answer, err := c.ask(ctx, http.MethodPost, "/v1/tasks", http.Header{"Content-Type": {"application/x-ndjson"}}, body.Bytes())
	if err == nil && status != http.StatusOK {
		err = failure(status, answer)
	}
	goesOn := err == nil
	scanner := bufio.NewScanner(bytes.NewReader(answer))
	scanner.Buffer(nil, 1<<20)
	for _, at := range part {
		switch {
		case err != nil:
			said[at] = Sent{Err: err}
		case !scanner.Scan():
			said[at] = Sent{Err: &Retry{"the server stopped before this line; it was not stored"}}
		default:
			said[at] = readLine(scanner.Bytes())
		}
		var no *Refused
		goesOn = goesOn && (said[at].Err == nil || errors.As(said[at].Err, &no))
	}
	return goesOn
}

// Wait tells how a task that was submitted before ended, without its result: that is among Results, or comes with Call.  It is asked for
// more rarely the longer it takes.  A *Refused with status 404: it was done too long ago, or never was.
func (c *Client) Wait(ctx context.Context, id string, wait time.Duration) (Outcome, error) {
	until := time.Now().Add(wait)
	for pause := 20 * time.Millisecond; ; pause = pause * 3 / 2 {
		told, err := c.Task(ctx, id)
		if err != nil {
			return Outcome{}, err
		}
		made := Outcome{State: "waiting", ID: id}
		if state, _ := told["state"].(string); state == "done" || state == "dead" {
			made.State = state
			made.Reason, _ = told["reason"].(string)
			made.Error, _ = told["error"].(string)
		}
		left := time.Until(until)
		if made.State != "waiting" || left <= 0 {
			return made, nil
		}
		if pause > time.Second {
			pause = time.Second
		}
		if pause > left {
			pause = left
		}
		select {
		case <-ctx.Done():
			return made, nil
		case <-time.After(pause):
		}
	}
}

// Task tells where a task is and what happened to it.
func (c *Client) Task(ctx context.Context, id string) (map[string]any, error) {
	return c.document(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(id), nil)
}

// Cancel cancels a task.
func (c *Client) Cancel(ctx context.Context, id string) (map[string]any, error) {
	return c.document(ctx, http.MethodPost, "/v1/tasks/"+url.PathEscape(id)+"/cancel", nil)
}

// Status is what quiver status --json prints.
func (c *Client) Status(ctx context.Context) (map[string]any, error) {
	return c.document(ctx, http.MethodGet, "/v1/status", nil)
}

// Results takes at most max results; those that are not committed within the lease come back.  A zero lease is the store's.
func (c *Client) Results(ctx context.Context, max int, lease time.Duration) ([]Result, error) {
	target := fmt.Sprintf("/v1/results/take?max=%d", max)
	if lease != 0 {
		target += fmt.Sprintf("&lease=%dms", milliseconds(lease))
	}
	status, body, err := c.ask(ctx, http.MethodPost, target, nil, nil)
	if err == nil && status != http.StatusOK {
		err = failure(status, body)
	}
	if err != nil {
		return nil, err
	}
	var told struct {
		Results []struct {
			Result
			Data   string `json:"data"`
			Base64 []byte `json:"data_base64"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return nil, &Unknown{"an answer that is no JSON: " + err.Error()}
	}
	results := make([]Result, len(told.Results))
	for i, one := range told.Results {
		results[i] = one.Result
		results[i].Data = []byte(one.Data)
		if one.Base64 != nil {
			results[i].Data = one.Base64
		}
	}
	return results, nil
}

// Commit says that results are done with: how many were, and the receipts of those that were not ours any more.
func (c *Client) Commit(ctx context.Context, receipts []string) (committed int, notOurs []string, err error) {
	body, err := json.Marshal(map[string]any{"receipts": receipts})
	if err != nil {
		return 0, nil, err
	}
	status, answer, err := c.ask(ctx, http.MethodPost, "/v1/results/commit", http.Header{"Content-Type": {"application/json"}}, body)
	if err == nil && status != http.StatusOK {
		err = failure(status, answer)
	}
	var told struct {
		Committed int
		Refused   []string
	}
	if err == nil {
		err = json.Unmarshal(answer, &told)
	}
	return told.Committed, told.Refused, err
}

// --- one request

func (c *Client) document(ctx context.Context, method, target string, body []byte) (map[string]any, error) {
	status, answer, err := c.ask(ctx, method, target, nil, body)
	if err == nil && (status < 200 || status > 299) {
		err = failure(status, answer)
	}
	if err != nil {
		return nil, err
	}
	return read(answer), nil
}

// ask sends one request, once.  Without a body that can be read again, net/http does not send it a second time by itself.
func (c *Client) ask(ctx context.Context, method, target string, fields http.Header, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+target, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return 0, nil, refused("%v", err)
	}
	request.ContentLength = int64(len(body))
	if len(body) == 0 {
		request.Body = http.NoBody
	}
	for name, values := range fields {
		request.Header[name] = values
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return 0, nil, &Retry{fmt.Sprintf("cannot connect to %s: %v", c.name, err)}
		}
		return 0, nil, &Unknown{fmt.Sprintf("%s did not answer: %v", c.name, err)}
	}
	defer answer.Body.Close()
	told, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil {
		return 0, nil, &Unknown{fmt.Sprintf("%s did not answer: %v", c.name, err)}
	}
	return answer.StatusCode, told, nil
}

// --- what an answer means

func read(body []byte) map[string]any {
	told := map[string]any{}
	_ = json.Unmarshal(body, &told) // what is no JSON says nothing
	return told
}

// failure is of an answer that is no success: 429 and 503 stored nothing; 504 may have, and behind a proxy's 502 is anything.
func failure(status int, body []byte) error {
	told := read(body)
	text, _ := told["detail"].(string)
	if text == "" {
		text, _ = told["error"].(string)
	}
	if text == "" {
		text = string(body[:min(len(body), 200)])
	}
	switch {
	case status == http.StatusGatewayTimeout:
		return &Unknown{text}
	case status == 408 || status == 429 || status == 503:
		return &Retry{text}
	case status >= 400 && status < 500:
		id, _ := told["id"].(string)
		return &Refused{text, status, id}
	}
	return &Unknown{fmt.Sprintf("%d: %s", status, text)}
}

func readSubmitted(status int, body []byte) (Submitted, error) {
	told := read(body)
	id, _ := told["id"].(string)
	if status != http.StatusAccepted || id == "" {
		return Submitted{}, failure(status, body)
	}
	duplicate, _ := told["duplicate"].(bool)
	return Submitted{id, duplicate}, nil
}

func readOutcome(status int, body []byte) (Outcome, error) {
	switch status {
	case http.StatusOK:
		return Outcome{State: "done", Result: append([]byte{}, body...)}, nil
	case http.StatusNoContent:
		return Outcome{State: "done"}, nil
	case http.StatusUnprocessableEntity:
		told := read(body)
		made := Outcome{State: "dead"}
		made.ID, _ = told["id"].(string)
		made.Reason, _ = told["reason"].(string)
		made.Error, _ = told["detail"].(string)
		return made, nil
	}
	stored, err := readSubmitted(status, body)
	return Outcome{State: "waiting", ID: stored.ID}, err
}

func readLine(text []byte) Sent {
	told := read(text)
	status, _ := told["status"].(float64)
	if int(status) == http.StatusAccepted {
		id, _ := told["id"].(string)
		duplicate, _ := told["duplicate"].(bool)
		return Sent{Submitted: Submitted{id, duplicate}}
	}
	if status == 0 {
		status = http.StatusGatewayTimeout
	}
	return Sent{Err: failure(int(status), text)}
}
