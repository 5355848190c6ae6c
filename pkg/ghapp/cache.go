package ghapp

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

const (
	// keptBody is the longest answer that is kept, in bytes.
	keptBody = 512 << 10
	// keptShare is the part of the cache that one installation may fill, so that a busy one leaves room.
	keptShare = 8
)

// place is what an answer is kept under: a tag belongs to one representation, as one installation sees it.
type place struct {
	installation int64
	url, accept  string
}

// kept is a body with the tag by which GitHub knows it. The header is what the body needs to be read.
type kept struct {
	place
	tag    string
	since  time.Time
	header http.Header
	body   []byte

	all, own *list.Element
}

// size estimates what the answer takes in memory.
func (k *kept) size() int64 { return int64(len(k.body) + 2*len(k.url) + len(k.tag) + 1024) }

// cache keeps answers that may be valid still, the least recently used are the first to go. It saves
// quota, never a question: whether an answer is valid, GitHub says each time.
type cache struct {
	limit int64

	mu     sync.Mutex
	at     map[place]*kept
	all    list.List
	own    map[int64]*shelf
	filled int64
}

// shelf is one installation's part.
type shelf struct {
	used   list.List
	filled int64
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, at: map[place]*kept{}, own: map[int64]*shelf{}}
}

// get returns what is kept in a place, unless that is older.
func (c *cache) get(p place, oldest time.Time) *kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.at[p]
	if k == nil || k.since.Before(oldest) {
		return nil
	}
	c.all.MoveToFront(k.all)
	c.own[p.installation].used.MoveToFront(k.own)
	return k
}

func (c *cache) put(k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.at[k.place])
	if k.size() > c.limit/keptShare {
		return
	}
	s := c.own[k.installation]
	if s == nil {
		s = &shelf{}
		c.own[k.installation] = s
	}
	c.at[k.place], k.all, k.own = k, c.all.PushFront(k), s.used.PushFront(k)
	c.filled, s.filled = c.filled+k.size(), s.filled+k.size()
	for s.filled > c.limit/keptShare {
		c.remove(s.used.Back().Value.(*kept))
	}
	for c.filled > c.limit {
		c.remove(c.all.Back().Value.(*kept))
	}
}

// drop forgets what is kept in a place.
func (c *cache) drop(p place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.at[p])
}

func (c *cache) remove(k *kept) {
	if k == nil {
		return
	}
	s := c.own[k.installation]
	delete(c.at, k.place)
	c.all.Remove(k.all)
	s.used.Remove(k.own)
	c.filled, s.filled = c.filled-k.size(), s.filled-k.size()
	if s.used.Len() == 0 {
		delete(c.own, k.installation)
	}
}
