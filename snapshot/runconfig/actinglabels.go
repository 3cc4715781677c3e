package runconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
)

// CopyLabels says which labels of the original a copy gets.
type CopyLabels string

// The choices for labels.
const (
	LabelsHarmless CopyLabels = "harmless" // those that make no other program act on the copy
	LabelsAll      CopyLabels = "all"      // as they were captured
)

// actingLabels are the labels that make other programs act on a container, without the last dot. A copy with them
// would get the original's traffic, run its jobs a second time, or be removed or updated in the original's place.
var actingLabels = []string{
	strings.TrimSuffix(catalog.ComposePrefix, "."),
	// orchestrators and tools that own their containers
	"com.docker.swarm", "com.docker.stack", "io.kubernetes", "com.hashicorp.nomad", "com.amazonaws.ecs", "io.rancher", "io.x-k8s.kind",
	"created_by.minikube.sigs.k8s.io", "name.minikube.sigs.k8s.io", "k3d", "coolify", "devcontainer", "com.ddev", "io.lando",
	// reverse proxies, DNS and tunnels
	"traefik", "caddy", "com.github.nginx-proxy", "com.github.jrcs.letsencrypt_nginx_proxy_companion", "swag", "proxy", "haproxy",
	"easyhaproxy", "interlock", "sozu", "pomerium", "tsdproxy", "dockflare", "cloudflare", "sablier", "coredns", "external-dns",
	// job runners and backups
	"ofelia", "chadburn", "deck-chores", "dockron", "swarm.cronjob", "docker-volume-backup", "restic-compose-backup", "nautical-backup",
	// reapers
	"org.testcontainers", "com.gitlab.gitlab-runner",
	// updaters and healers
	"com.centurylinklabs.watchtower", "com.ouroboros", "diun", "wud", "mag37.dockcheck", "keel.sh", "cd.doco", "autoheal", "deunhealth",
}

// isActing reports whether a label makes another program act on a container: it is one of [actingLabels], or begins with
// one as a word, as caddy_1 and traefik.enable do.
func isActing(key string) bool {
	for _, name := range actingLabels {
		if rest, ok := strings.CutPrefix(key, name); ok && (rest == "" || strings.ContainsRune("._-/", rune(rest[0]))) {
			return true
		}
	}
	return false
}

// traefikEnable decides whether Traefik serves a container. Without it, that is a setting of Traefik.
const traefikEnable = "traefik.enable"

// optsOut reports whether the value of a label tells a program to leave the container alone.
func optsOut(value string) bool {
	return slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
}

// withoutActing returns the labels of that choice. It keeps those that tell a program to leave the container alone.
func withoutActing(all map[string]string, choice CopyLabels) map[string]string {
	kept := maps.Clone(all)
	if choice != LabelsAll {
		maps.DeleteFunc(kept, func(key, value string) bool { return isActing(key) && !optsOut(value) })
	}
	return kept
}

// optOutOfTraefik tells Traefik not to serve a copy whose original has labels for it: by default it serves containers without any.
func optOutOfTraefik(own, captured map[string]string) {
	for key := range captured {
		if strings.HasPrefix(key, "traefik.") {
			own[traefikEnable] = "false"
			return
		}
	}
}

// BlankActing sets to empty the labels that would make other programs act on a copy, and that it would inherit from its image. None
// can be left out.
func (sp *Spec) BlankActing(image map[string]string, choice CopyLabels) {
	for key, value := range image {
		if _, own := sp.Config.Labels[key]; !own && choice != LabelsAll && isActing(key) && !optsOut(value) {
			sp.Config.Labels[key] = ""
		}
	}
}
