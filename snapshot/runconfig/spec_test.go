package runconfig

import (
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

func TestDecodeSpecKnowsWhatItWouldLose(t *testing.T) {
	s := snapshotWith(`{"Image":"x","Env":["A=1"],"Later":{"x":[0,{"y":1}]},"Empty":{"x":[]}}`, `{"Memory":5,"memorySwap":6,"New":true,"Old":false}`, `{"EndpointsConfig":{"a":{"Aliases":["b"],"Speed":9},"gone":null},"Scope":"s"}`)
	sp, lost, err := Decode(s.Config)
	assert.NilError(t, err)
	assert.DeepEqual(t, lost, []string{"Config.Later.x", "HostConfig.New", "NetworkingConfig.EndpointsConfig.a.Speed", "NetworkingConfig.Scope"})
	assert.Equal(t, sp.Host.Memory+sp.Host.MemorySwap, int64(11))
	assert.Equal(t, len(sp.Endpoints), 1)
}

func TestDecodeSpecGoesByNetworkNames(t *testing.T) {
	id := strings.Repeat("12", 32)
	for mode, want := range map[string]string{id: "shop", id[:12]: "shop", "shop": "shop", "other": "other", "host": "host", "12": "12"} {
		s := snapshotWith(`{}`, `{"NetworkMode":"`+mode+`"}`, `{"EndpointsConfig":{"shop":{"NetworkID":"`+id+`"},"other":{"NetworkID":"9`+id[1:]+`"}}}`)
		sp, _, err := Decode(s.Config)
		assert.NilError(t, err)
		assert.Equal(t, string(sp.Host.NetworkMode), want)
		assert.Equal(t, sp.Endpoints["shop"].NetworkID, "")
	}
}

func TestMissingFields(t *testing.T) {
	tests := []struct{ want, have, lost string }{
		{`{"a":1}`, `{"a":2}`, ""},
		{`{"a":1}`, `{}`, "p.a"},
		{`{"a":1}`, `{"A":1}`, ""},
		{`{"a":0,"b":"","c":[],"d":{},"e":null,"f":false,"g":[0,""],"h":{"x":{"y":[]}}}`, `{}`, ""},
		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1}}}`, "p.a.b.d"},
		{`{"a":{"b":1},"c":[1]}`, `{}`, "p.a.b p.c"},
		{`{"a":{"b":1}}`, `{"a":7}`, "p.a.b"},
		{`{"a":[{"x":1}]}`, `{"a":[{}]}`, "p.a[0].x"},
		{`{"a":[0,{"x":1,"y":2}]}`, `{"a":[0,{"x":1}]}`, "p.a[1].y"},
		{`{"a":["NET_ADMIN"]}`, `{"a":["CAP_NET_ADMIN"]}`, ""},
		{`{"a":[1,2]}`, `{"a":[1]}`, ""},
		{`{"a":[1,2]}`, `{"a":[]}`, "p.a"},
		{`[1]`, `[]`, "p"},
		{`null`, `{}`, ""},
	}
	for _, test := range tests {
		lost, err := MissingFields("p", []byte(test.want), []byte(test.have))
		assert.NilError(t, err)
		assert.Equal(t, strings.Join(lost, " "), test.lost, test.want)
	}
	for _, broken := range [][2]string{{`{`, `{}`}, {`{}`, `{`}} {
		_, err := MissingFields("p", []byte(broken[0]), []byte(broken[1]))
		assert.Assert(t, err != nil)
	}
}

// snapshotWith returns a snapshot with that configuration.
func snapshotWith(config, host, networking string) catalog.Snapshot {
	s := captured()
	s.Config = labels.Config{Config: []byte(config), HostConfig: []byte(host), NetworkingConfig: []byte(networking)}
	return s
}
