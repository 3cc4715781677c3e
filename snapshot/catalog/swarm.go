package catalog

// Labels of the containers that Swarm runs.
const (
	labelSwarmTask    = "com.docker.swarm.task.id"
	labelSwarmService = "com.docker.swarm.service.name"
)

// SwarmService returns the Swarm service that a container with these labels is a task of.
func SwarmService(containerLabels map[string]string) (service string, isTask bool) {
	return containerLabels[labelSwarmService], containerLabels[labelSwarmTask] != ""
}

// SwarmReason says why the secrets and configs of a Swarm task are not in its snapshot.
const SwarmReason = "Swarm gives secrets and configs to the tasks of a service alone"
