package runconfig

import (
	"encoding/json"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestTakePlaceTakesThePlaceAndKeepsTheRest(t *testing.T) {
	copied := labels.Config{
		Config:     json.RawMessage(`{"Hostname":"copy","Env":["A=copy"],"Cmd":["new"],"Labels":{"mine":"copy","com.docker.compose.service":"","traefik.enable":""},"Volumes":{"/x":{}}}`),
		HostConfig: json.RawMessage(`{"Memory":5,"Binds":["data-1:/data","/etc:/etc:ro"],"PortBindings":{"80/tcp":[{"HostPort":"1"}]},"NetworkMode":"a"}`),
		Peers:      map[string]string{"1": "one"},
	}
	place := labels.Config{
		Config:           json.RawMessage(`{"Hostname":"web","Env":["A=web"],"Cmd":["old"],"Labels":{"mine":"web","gone":"1","com.docker.compose.service":"web","traefik.enable":"true"}}`),
		HostConfig:       json.RawMessage(`{"Memory":9,"Binds":["data:/data","/etc:/etc"],"PortBindings":{"80/tcp":[{"HostPort":"80"}]},"NetworkMode":"b","Unknown":1}`),
		NetworkingConfig: json.RawMessage(`{"EndpointsConfig":{"b":{}}}`), Peers: map[string]string{"2": "two"}, DefaultHostname: true,
	}
	got, err := TakePlace(copied, place)
	assert.NilError(t, err)
	assert.Equal(t, string(got.Config), `{"Cmd":["new"],"Env":["A=copy"],"Hostname":"web","Labels":{"com.docker.compose.service":"web","mine":"copy","traefik.enable":"true"}}`)
	assert.Equal(t, string(got.HostConfig), `{"Binds":["data:/data","/etc:/etc"],"Memory":5,"NetworkMode":"b","PortBindings":{"80/tcp":[{"HostPort":"80"}]}}`)
	assert.Equal(t, string(got.NetworkingConfig), `{"EndpointsConfig":{"b":{}}}`)
	assert.Equal(t, got.DefaultHostname, true)
	assert.DeepEqual(t, got.Peers, map[string]string{"1": "one", "2": "two"})

	_, err = TakePlace(labels.Config{Config: json.RawMessage(`[]`)}, place)
	assert.ErrorContains(t, err, "read configuration")
}
