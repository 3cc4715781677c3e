package runconfig

import (
	"encoding/json"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

// FuzzDecodeSpec decodes whatever an image may hold for a captured configuration. Nothing that
// works with the result may panic, and the result must be something that the create call can
// encode.
func FuzzDecodeSpec(f *testing.F) {
	for _, seed := range []string{
		`{"Config":{},"HostConfig":{},"NetworkingConfig":{}}`,
		`{"Config":{"Hostname":"x","Env":["A"],"ExposedPorts":{"80":{},"":{}},"Healthcheck":{"StartInterval":1}},"HostConfig":{"Binds":["a","/:/x","b:c:d:e",""],"NetworkMode":"container:","PortBindings":{"80/tcp":[{"HostIp":"::1","HostPort":"99999"}],"x":null},"Links":["a:b","/a:/b/c",":"],"VolumesFrom":["x"]}}`,
		`{"Config":{"Labels":{"a":"b"}},"HostConfig":{"Mounts":[{"Type":"volume","VolumeOptions":{"DriverConfig":{}}},{"Type":"bind"},{}],"Devices":[{}],"CapAdd":[""],"MaskedPaths":[]},"NetworkingConfig":{"EndpointsConfig":{"a":null,"":{}}}}`,
	} {
		f.Add(seed, `[{"type":"volume","name":"v","destination":"/x","rw":true},{"type":"bind","destination":"y"}]`)
	}
	f.Fuzz(func(t *testing.T, config, mounts string) {
		s := captured()
		if json.Unmarshal([]byte(config), &s.Config) != nil || json.Unmarshal([]byte(mounts), &s.Mounts) != nil {
			return
		}
		sp, _, err := Decode(s.Config)
		if err != nil {
			return
		}
		sp.ForCopy(s, LabelsHarmless)
		sp.planVolumes(s, RestoreOptions{Volumes: VolumesNew}, "copy")
		sp.Override(RestoreOptions{Env: []string{"A=1"}, Labels: map[string]string{"a": "b"}, Memory: new(int64(1)), PublishAll: true}, nil)
		sp.FitAPI("1.41")
		sp.FreeFailedPort(errorString("all ports are allocated"), nil)
		sp.ForgetForeign(nil)
		sp.BlankInherited(map[string]string{labels.KeyID: "x"})
		sp.asked(judge{})
		problems := bare().Problems(&sp, "web")
		sp.LeaveOut(problems)
		sp.YieldHostname(s.Container, bare())
		sp.FreeTakenPorts(map[HostPort]string{{Port: 80, Proto: "tcp"}: "x"}, nil)
		_, err = json.Marshal(map[string]any{"config": sp.Config, "host": sp.Host, "networking": sp.Networking(sp.NetworkNames())})
		assert.NilError(t, err)
	})
}
