package local

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// readyTime bounds the wait for a service to become ready.
const readyTime = 30 * time.Second

// ready waits until a service says that it is.
func (s *Stack) ready(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		failing, err := askReady(ctx, "http://"+s.At.Debug[name]+"/readyz")
		if err == nil && len(failing) == 0 {
			return nil
		}
		select {
		case err := <-s.failed:
			return err
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("it waits for %s", strings.Join(failing, ", "))
			}
			return fmt.Errorf("%s did not become ready: %w", name, err)
		case <-tick.C:
		}
	}
}

// askReady returns what keeps a service from being ready.
func askReady(ctx context.Context, url string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := probe.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK {
		return nil, nil
	}
	var answer struct {
		Failing []string `json:"failing"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Failing) == 0 {
		return nil, fmt.Errorf("%s answers %s", url, res.Status)
	}
	return answer.Failing, nil
}

// probe keeps no connections: a service that stops would wait for them.
var probe = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
