package commands

import (
	"fmt"
	"time"

	"github.com/docker/go-units"

	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
)

// phase is a part of an operation, as far as it has come.
type phase struct {
	started time.Time
	event   plan.Event // the last one

	counted time.Time // when the first bytes were counted
	base    int64     // how many they were
}

func (p *phase) update(e plan.Event, now time.Time) {
	p.event = e
	if p.counted.IsZero() && e.Current > 0 {
		p.counted, p.base = now, e.Current
	}
}

// describe is the phase in one line: its text, how much of it is done, how fast, and how
// long it will take, as far as that is known.
func (p *phase) describe(now time.Time) string {
	text := p.event.Text
	switch {
	case p.event.Total > 0:
		text += fmt.Sprintf("  %s of %s", roughSize(p.event.Current), roughSize(p.event.Total))
	case p.event.Current > 0:
		text += "  " + roughSize(p.event.Current)
	}
	if p.event.Files > 0 {
		text += fmt.Sprintf("  %d files", p.event.Files)
	}
	text += "  " + seconds(now.Sub(p.started))
	rate := p.rate(now)
	if rate <= 0 {
		return text
	}
	text += fmt.Sprintf("  %s/s", roughSize(int64(rate)))
	if left := p.event.Total - p.event.Current; left > 0 {
		text += fmt.Sprintf("  %s left", seconds(time.Duration(float64(left)/rate*float64(time.Second))))
	}
	return text
}

// rate is in bytes per second, since the first ones were counted.
func (p *phase) rate(now time.Time) float64 {
	elapsed := now.Sub(p.counted).Seconds()
	if p.counted.IsZero() || elapsed <= 0 {
		return 0
	}
	return float64(p.event.Current-p.base) / elapsed
}

// roughSize is a size in three digits: it changes while it is read.
func roughSize(bytes int64) string { return units.HumanSizeWithPrecision(float64(bytes), 3) }

func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
