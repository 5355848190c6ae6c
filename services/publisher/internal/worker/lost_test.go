package worker

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/publisher/internal/publisher"
)

// TestOneAnswerInFiveIsLost, whether the write was made or not, for many pull requests and two heads each, with a
// comment that spoils its review, progress, and more annotations than one call takes: at rest each page has one
// comment, each remark once, and one check run per head, with each annotation once.
func TestOneAnswerInFiveIsLost(t *testing.T) {
	t.Parallel()
	const pages = 6
	r := newRig(t)
	dice, waits := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
	losing := true
	fate := map[*http.Request]float64{}
	lost := 0
	r.gh.set(func(w http.ResponseWriter, req *http.Request, done bool) bool {
		if req.Method == http.MethodGet || !strings.HasPrefix(req.URL.Path, "/repositories/") {
			return false
		}
		r.gh.mu.Lock()
		if !done {
			fate[req] = dice.Float64()
		}
		roll := fate[req]
		drops := losing && (done && roll < 0.15 || !done && roll > 0.95)
		if drops {
			lost++
		}
		r.gh.mu.Unlock()
		return drops && drop(w)
	})
	r.gh.bad["bad"] = true
	var paths []string
	for n := range 60 {
		paths = append(paths, fmt.Sprintf("p%02d", n))
	}
	r.review = publisher.Review{Findings: finds(append([]string{"bad"}, paths...)...)}
	s := r.sender(r.store)
	var last []publisher.Epoch
	for number := range int64(pages) {
		target := publisher.TargetID(mint())
		for n, head := range []string{"aaaa", "bbbb"} {
			e := r.epoch(target, number+1, int64(n+1), fmt.Sprintf("%s%d", head, number))
			e.PR.Installation = number%3 + 1
			e.Run.Warnings = 61
			r.publish(progress(e, int64(n+1), publisher.KindQueued))
			r.settle(s)
			r.pass(time.Duration(waits.IntN(20)) * time.Second)
			r.publish(e)
			r.settle(s)
			r.pass(time.Duration(waits.IntN(20)) * time.Second)
			if n == 1 {
				last = append(last, e)
			}
		}
	}
	for range 40 {
		r.settle(s)
		r.pass(20 * time.Second)
	}
	r.gh.mu.Lock()
	losing = false
	r.gh.mu.Unlock()
	for range 4 {
		r.pass(10 * time.Minute)
		r.settle(s)
	}
	r.gh.mu.Lock()
	t.Logf("%d answers lost", lost)
	remarks := slices.Clone(r.gh.remarks)
	r.gh.mu.Unlock()
	for _, e := range last {
		r.page(e)
		var got []string
		number := strconv.FormatInt(e.PR.Number, 10)
		for _, c := range remarks {
			if c.Number == number {
				got = append(got, c.Path)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, paths) {
			t.Errorf("page %s: %d remarks, want %d, each once", number, len(got), len(paths))
		}
		r.wantCheck(e.Run.HeadSHA, "completed neutral")
	}
	for _, c := range r.gh.checkRuns() {
		if c["status"] != "completed" {
			t.Errorf("a check run of %v is %v", c["head_sha"], c["status"])
		}
		if n := len(c["annotations"].([]any)); n != 61 && n != 0 {
			t.Errorf("%d annotations at %v", n, c["head_sha"])
		}
	}
	if n := r.told("publication:"); n != 2*pages {
		t.Errorf("%d publications told, want %d", n, 2*pages)
	}
}
