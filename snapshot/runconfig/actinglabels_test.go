package runconfig

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"gotest.tools/v3/assert"

	"github.com/cua-snapshot/docker-snapshot/labels"
)

func TestIsActing(t *testing.T) {
	for _, key := range []string{
		"traefik.enable", "traefik.http.routers.web.rule", "caddy", "caddy_1", "caddy_1.reverse_proxy", "caddy.tls", "ofelia.enabled", "autoheal",
		"com.centurylinklabs.watchtower.enable", "diun.enable", "com.docker.swarm.task.id", "com.docker.stack.namespace", "com.docker.compose.project",
		"org.testcontainers.sessionId", "io.kubernetes.pod.uid",
	} {
		assert.Assert(t, isActing(key), key)
	}
	for _, key := range []string{"own", "caddyshack", "com.docker.composer", "org.opencontainers.image.title", "maintainer", "autohealing", "cua.snapshot.policy.binds"} {
		assert.Assert(t, !isActing(key), key)
	}
}

func TestCopyHasNoActingLabels(t *testing.T) {
	own := map[string]string{"own": "1", "traefik.http.routers.web.rule": "x", "com.docker.compose.service": "web", "diun.enable": "False"}
	image := map[string]string{"ofelia.enabled": "true", "traefik.enable": "true", "maintainer": "me"}

	sp := Spec{Config: container.Config{Labels: own}}
	sp.ForCopy(captured(), "")
	sp.Override(RestoreOptions{Labels: map[string]string{"autoheal": "true"}}, nil)
	sp.BlankActing(image, "")
	assert.DeepEqual(t, labels.Users(sp.Config.Labels), map[string]string{
		"own": "1", "diun.enable": "False", "autoheal": "true", "ofelia.enabled": "", "traefik.enable": "false",
	})

	sp = Spec{Config: container.Config{Labels: own}}
	sp.ForCopy(captured(), LabelsAll)
	sp.BlankActing(image, LabelsAll)
	assert.DeepEqual(t, labels.Users(sp.Config.Labels), own)
}
