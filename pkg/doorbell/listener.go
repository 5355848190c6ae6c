package doorbell

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	block    = 2 * time.Second       // how long one read waits for a ring
	readOver = block + time.Second   // when a read is given up: Redis hangs
	minPause = 50 * time.Millisecond // after the first failed read
	maxPause = 2 * time.Second       // after many
)

// ListenerOptions name the stream and who listens. Listeners of one Group share its rings: each ring wakes
// one of them.
type ListenerOptions struct {
	Stream   string
	Group    string
	Consumer string // unique per process
	Log      *slog.Logger
}

// Listener hears rings. It reads from Redis only while somebody waits in Next, so that a ring goes to a
// worker that has a free slot, and it keeps one connection.
type Listener struct {
	opts  ListenerOptions
	log   *slog.Logger
	rdb   *redis.Client
	rings chan Ring     // what the read in hand brought
	turn  chan struct{} // held by the one read under way

	closing   chan struct{}
	closeOnce sync.Once
	failures  int // failed reads in a row; owned by the holder of turn
}

// NewListener returns a listener that connects at its first Next.
func NewListener(cfg Config, opts ListenerOptions) *Listener {
	return &Listener{
		opts: opts, log: orDiscard(opts.Log), rdb: newClient(cfg.Addr, 2),
		rings: make(chan Ring, 1), turn: make(chan struct{}, 1), closing: make(chan struct{}),
	}
}

// Next waits for a ring until ctx ends, and returns no error but ctx's own, or ErrClosed after Close.
// A Redis that is away looks like silence; it reconnects by itself.
//
// The read behind it outlives ctx by at most two seconds, since a blocking read cannot be interrupted
// without giving up its connection; a ring that it brings is kept for the following Next.
func (l *Listener) Next(ctx context.Context) (Ring, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Ring{}, err
		}
		select {
		case r := <-l.rings:
			return r, nil
		default:
		}
		select {
		case r := <-l.rings:
			return r, nil
		case <-ctx.Done():
			return Ring{}, ctx.Err()
		case <-l.closing:
			return Ring{}, ErrClosed
		case l.turn <- struct{}{}:
			go func() {
				defer func() { <-l.turn }()
				l.read()
			}()
		}
	}
}

// Close ends the listener and its read.
func (l *Listener) Close() error {
	var err error
	l.closeOnce.Do(func() {
		close(l.closing)
		err = l.rdb.Close()
	})
	return err
}

// read asks once. It pauses after a failure while it holds the turn, so that however many wait, a Redis
// that is away is asked at a gentle pace.
func (l *Listener) read() {
	ctx, cancel := context.WithTimeout(context.Background(), readOver)
	defer cancel()
	streams, err := l.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: l.opts.Group, Consumer: l.opts.Consumer, Streams: []string{l.opts.Stream, ">"},
		Count: 1, Block: block, NoAck: true,
	}).Result()
	if missing(err) {
		err = l.create(ctx)
	}
	switch {
	case err == nil:
		l.heard()
		l.deliver(streams)
	case empty(err):
		l.heard()
	default:
		l.failed(err)
	}
}

// create makes stream and group. It starts at the stream's beginning, not its end: a ring that came
// before the group is one that nobody heard.
func (l *Listener) create(ctx context.Context) error {
	err := l.rdb.XGroupCreateMkStream(ctx, l.opts.Stream, l.opts.Group, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

func (l *Listener) deliver(streams []redis.XStream) {
	for _, s := range streams {
		for _, m := range s.Messages {
			id, _ := m.Values[field].(string)
			select {
			case l.rings <- Ring{Stream: s.Stream, ID: id}:
			case <-l.closing:
			}
		}
	}
}

func (l *Listener) heard() {
	if l.failures > 0 {
		l.log.Info("doorbell works again", "stream", l.opts.Stream, "failed_reads", l.failures)
		l.failures = 0
	}
}

func (l *Listener) failed(err error) {
	select {
	case <-l.closing:
		return
	default:
	}
	l.failures++
	if l.failures == 1 {
		l.log.Warn("doorbell is away, the scan finds the work", "stream", l.opts.Stream, "err", err)
	}
	pause(l.closing, min(minPause<<min(l.failures-1, 10), maxPause))
}

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("doorbell: listener closed")
