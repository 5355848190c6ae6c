package store

import (
	"errors"
	"testing"
	"time"

	"github.com/fenceline-dev/fenceline/services/ingest/internal/ingest"
)

// takenUp tells which of an installation's work another replica would take up now.
func takenUp(t *testing.T, s *Store) (projects, installations, commands int) {
	t.Helper()
	for {
		p, found, err := s.TakeProject(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		if p.InstallationID == acmeInstalled {
			projects++
		}
	}
	for {
		in, found, err := s.TakeInstallation(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		if in.ID == acmeInstalled {
			installations++
		}
	}
	return projects, installations, len(claim(t, s, 10))
}

// TestPauseHoldsEverywhere: whoever is told to wait, a listing of a project or of the installation, or a command,
// no replica asks GitHub for that installation until then: not for what is there, nor for what comes, nor in a
// listing under way. Others go on.
func TestPauseHoldsEverywhere(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]func(t *testing.T, s *Store){
		"a project": func(t *testing.T, s *Store) {
			for {
				p, found, err := s.TakeProject(t.Context(), host)
				if err != nil || !found {
					t.Fatal(found, err)
				}
				if p.InstallationID == acmeInstalled {
					leave(t, s, p, ingest.SweepEnd{Next: time.Minute, Pause: time.Hour})
					return
				}
			}
		},
		"an installation": func(t *testing.T, s *Store) {
			for {
				in, found, err := s.TakeInstallation(t.Context(), host)
				if err != nil || !found {
					t.Fatal(found, err)
				}
				if in.ID == acmeInstalled {
					if err := s.LeaveInstallation(t.Context(), in, ingest.SweepEnd{Next: time.Minute, Pause: time.Hour}); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
		},
		"a command": func(t *testing.T, s *Store) {
			if err := s.PostponeCommand(t.Context(), only(t, claim(t, s, 1)), time.Hour, true, "throttled"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := setup(t, everybody)
			deliver(t, s, "acme", installation("created", acmeInstalled, acme, 1, rocket, sled))
			deliver(t, s, "zenith", installation("created", zenithInstalled, zenith, 1, kite))
			deliver(t, s, "said", says(1, 5, "/fenceline review"))
			due := func() {
				exec(t, d, "UPDATE ingest.projects SET sweep_at = NULL")
				exec(t, d, "UPDATE ingest.installations SET sweep_at = NULL")
				exec(t, d, "UPDATE ingest.commands SET available_at = clock_timestamp(), claim_id = NULL, claim_until = NULL")
			}
			due()
			var underWay ingest.SweptProject
			for underWay.InstallationID != acmeInstalled {
				underWay, _, _ = s.TakeProject(t.Context(), host)
			}
			told(t, s)

			other := over(d.Open(t, "ingest"), everybody)
			deliver(t, other, "said again", says(2, 6, "/fenceline review"))
			deliver(t, other, "news", repositories("added", acmeInstalled, acme, 2, sled))
			due()
			if projects, installations, commands := takenUp(t, other); projects+installations+commands != 0 {
				t.Errorf("asked for %d projects, %d installations, %d commands", projects, installations, commands)
			}
			if err := s.Seen(t.Context(), underWay, nil); !errors.Is(err, ingest.ErrSweepLost) {
				t.Errorf("a listing under way goes on: %v", err)
			}
			exec(t, d, "UPDATE ingest.projects SET sweep_at = NULL")
			if p, found, err := other.TakeProject(t.Context(), host); err != nil || !found || p.InstallationID != zenithInstalled {
				t.Errorf("another installation is held up: %v, %v", found, err)
			}

			exec(t, d, "UPDATE ingest.installations SET paused_until = paused_until - interval '1 hour'")
			due()
			if projects, installations, commands := takenUp(t, other); projects != 2 || installations != 1 || commands != 2 {
				t.Errorf("after the pause: %d projects, %d installations, %d commands", projects, installations, commands)
			}
		})
	}
}

// TestUnsuspendedIsAskedAtOnce: a suspension's pause ends with it.
func TestUnsuspendedIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	s, d := setup(t, everybody)
	deliver(t, s, "acme", installation("created", acmeInstalled, acme, 1, rocket))
	leave(t, s, listed(t, s, d), ingest.SweepEnd{Next: time.Hour, Pause: time.Hour})
	noneDue(t, s)
	deliver(t, s, "suspended", installation("suspend", acmeInstalled, acme, 2))
	deliver(t, s, "back", installation("unsuspend", acmeInstalled, acme, 3))
	if _, found, err := s.TakeProject(t.Context(), host); err != nil || !found {
		t.Errorf("not listed: %v", err)
	}
}
