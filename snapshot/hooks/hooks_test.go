package hooks

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestACommandIsAListOrWhatAShellRuns(t *testing.T) {
	for text, want := range map[string]Command{
		"":                      nil,
		"  ":                    nil,
		"redis-cli save":        {"sh", "-c", "redis-cli save", argv0},
		`["redis-cli", "save"]`: {"redis-cli", "save"},
		"[ -e /x ] && sync":     {"sh", "-c", "[ -e /x ] && sync", argv0},
		"[1, 2]":                {"sh", "-c", "[1, 2]", argv0},
		"[]":                    {"sh", "-c", "[]", argv0},
		`"quoted"`:              {"sh", "-c", `"quoted"`, argv0},
	} {
		assert.DeepEqual(t, ParseCommand(text), want)
	}
}

func TestWhatTheUserAsksForGoesBeforeTheLabels(t *testing.T) {
	theirs := map[string]string{
		labels.KeyPolicyPre: "lock", labels.KeyPolicyPost: "unlock", labels.KeyPolicyHookTimeout: "5s", labels.KeyPolicyOnError: "continue",
	}
	none, other := Command(nil), ParseCommand("other")
	for name, tc := range map[string]struct {
		labels map[string]string
		asked  Options
		want   Hooks
		fails  string
	}{
		"nothing": {},
		"labels":  {theirs, Options{}, Hooks{ParseCommand("lock"), ParseCommand("unlock"), 5 * time.Second, Continue}, ""},
		"all asked for": {
			theirs,
			Options{Pre: &other, Post: &other, Timeout: time.Minute, OnError: Fail},
			Hooks{other, other, time.Minute, Fail},
			"",
		},
		"one switched off":   {theirs, Options{Pre: &none}, Hooks{nil, ParseCommand("unlock"), 5 * time.Second, Continue}, ""},
		"all switched off":   {map[string]string{labels.KeyPolicyPre: "x", labels.KeyPolicyOnError: "bad"}, Options{Pre: &none}, Hooks{}, ""},
		"defaults":           {nil, Options{Post: &other}, Hooks{nil, other, DefaultTimeout, Fail}, ""},
		"a bad timeout":      {map[string]string{labels.KeyPolicyPre: "x", labels.KeyPolicyHookTimeout: "soon"}, Options{}, Hooks{}, "label cua.snapshot.policy.hook-timeout: invalid duration"},
		"no time":            {map[string]string{labels.KeyPolicyPre: "x", labels.KeyPolicyHookTimeout: "0s"}, Options{}, Hooks{}, "0s is not between 0 and 1h0m0s"},
		"too long":           {map[string]string{labels.KeyPolicyPre: "x", labels.KeyPolicyHookTimeout: "2h"}, Options{}, Hooks{}, "2h is not between 0 and 1h0m0s"},
		"a bad choice":       {map[string]string{labels.KeyPolicyPre: "x", labels.KeyPolicyOnError: "stop"}, Options{}, Hooks{}, "label cua.snapshot.policy.on-error: use one of continue, fail"},
		"a bad, unused one":  {map[string]string{labels.KeyPolicyHookTimeout: "soon"}, Options{}, Hooks{}, ""},
		"a bad one, not met": {map[string]string{labels.KeyPolicyPre: "x", labels.KeyPolicyHookTimeout: "soon"}, Options{Timeout: time.Second}, Hooks{ParseCommand("x"), nil, time.Second, Fail}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(tc.labels, tc.asked)
			if tc.fails != "" {
				assert.ErrorContains(t, err, tc.fails)
				return
			}
			assert.NilError(t, err)
			assert.DeepEqual(t, got, tc.want)
		})
	}
}
