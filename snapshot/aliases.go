package snapshot

import (
	"github.com/cua-snapshot/docker-snapshot/snapshot/archives"
	"github.com/cua-snapshot/docker-snapshot/snapshot/build"
	"github.com/cua-snapshot/docker-snapshot/snapshot/capture"
	"github.com/cua-snapshot/docker-snapshot/snapshot/catalog"
	"github.com/cua-snapshot/docker-snapshot/snapshot/dockerop"
	"github.com/cua-snapshot/docker-snapshot/snapshot/plan"
	"github.com/cua-snapshot/docker-snapshot/snapshot/removal"
	"github.com/cua-snapshot/docker-snapshot/snapshot/replace"
	"github.com/cua-snapshot/docker-snapshot/snapshot/runconfig"
)

const (
	LevelNote           = plan.LevelNote
	LevelStatus         = plan.LevelStatus
	LevelWarning        = plan.LevelWarning
	TopicOriginalGone   = plan.TopicOriginalGone
	TopicReadOnlyBind   = plan.TopicReadOnlyBind
	TopicUnfinished     = plan.TopicUnfinished
	OpConnectNetwork    = plan.OpConnectNetwork
	OpCreateAnonymous   = plan.OpCreateAnonymous
	OpCreateContainer   = plan.OpCreateContainer
	OpCreateSnapshot    = plan.OpCreateSnapshot
	OpCreateVolume      = plan.OpCreateVolume
	OpLeaveOut          = plan.OpLeaveOut
	OpPauseContainer    = plan.OpPauseContainer
	OpRemoveContainer   = plan.OpRemoveContainer
	OpRenameContainer   = plan.OpRenameContainer
	OpReplacePort       = plan.OpReplacePort
	OpRestoreVolume     = plan.OpRestoreVolume
	OpStartContainer    = plan.OpStartContainer
	OpStopContainer     = plan.OpStopContainer
	ProblemAddressTaken = plan.ProblemAddressTaken
	ProblemArchive      = plan.ProblemArchive
	ProblemDead         = plan.ProblemDead
	ProblemDependent    = plan.ProblemDependent
	ProblemHostAccess   = plan.ProblemHostAccess
	ProblemNameTaken    = plan.ProblemNameTaken
	ProblemNoArchive    = plan.ProblemNoArchive
	ProblemNoBindSource = plan.ProblemNoBindSource
	ProblemNoContainer  = plan.ProblemNoContainer
	ProblemNoDevice     = plan.ProblemNoDevice
	ProblemNoNetwork    = plan.ProblemNoNetwork
	ProblemNoRuntime    = plan.ProblemNoRuntime
	ProblemNoSpace      = plan.ProblemNoSpace
	ProblemNoVolume     = plan.ProblemNoVolume
	ProblemNotHeld      = plan.ProblemNotHeld
	ProblemOneShot      = plan.ProblemOneShot
	ProblemOtherOneShot = plan.ProblemOtherOneShot
	ProblemPortTaken    = plan.ProblemPortTaken
	ProblemRenamed      = plan.ProblemRenamed
	ProblemUnsaved      = plan.ProblemUnsaved
	ProblemVolumeInUse  = plan.ProblemVolumeInUse
)

type (
	Event         = plan.Event
	Level         = plan.Level
	Op            = plan.Op
	Plan          = plan.Plan
	Problem       = plan.Problem
	ProblemKind   = plan.ProblemKind
	ProblemsError = plan.ProblemsError
	Topic         = plan.Topic
	Progress      = plan.Progress
	Step          = plan.Step
	Timing        = plan.Timing
	Timings       = plan.Timings
)

type (
	Containers  = dockerop.Containers
	Docker      = dockerop.Docker
	FreezeError = dockerop.FreezeError
	SelfError   = dockerop.SelfError
	Host        = dockerop.Host
	Images      = dockerop.Images
	Lifecycle   = dockerop.Lifecycle
)

const (
	SortCreated = catalog.SortCreated
	SortName    = catalog.SortName
	SortSize    = catalog.SortSize
)

type (
	AmbiguousError = catalog.AmbiguousError
	Candidate      = catalog.Candidate
	Filter         = catalog.Filter
	ListOptions    = catalog.ListOptions
	NameTakenError = catalog.NameTakenError
	NotFoundError  = catalog.NotFoundError
	PinnedError    = catalog.PinnedError
	Service        = catalog.Service
	Snapshot       = catalog.Snapshot
	Sort           = catalog.Sort
)

var (
	FilterKeys    = catalog.FilterKeys
	ParseDuration = catalog.ParseDuration
	ParseFilter   = catalog.ParseFilter
	Repository    = catalog.Repository
)

type (
	VolumeBackup  = archives.Backup
	VolumeLock    = archives.Lock
	VolumeStore   = archives.Store
	VolumeWorker  = archives.Worker
	VolumeWorkers = archives.Workers
	Volumes       = archives.Service
)

var Archives = archives.Of

const (
	AccessBind        = runconfig.AccessBind
	BindsNone         = runconfig.BindsNone
	BindsReadOnly     = runconfig.BindsReadOnly
	BindsShared       = runconfig.BindsShared
	ConfigEnvironment = runconfig.ConfigEnvironment
	ConfigImage       = runconfig.ConfigImage
	ConfigMount       = runconfig.ConfigMount
	ConfigPort        = runconfig.ConfigPort
	StartAlways       = runconfig.StartAlways
	StartAsCaptured   = runconfig.StartAsCaptured
	StartNever        = runconfig.StartNever
	VolumesNew        = runconfig.VolumesNew
	VolumesNone       = runconfig.VolumesNone
	VolumesShared     = runconfig.VolumesShared
)

type (
	Access         = runconfig.Access
	AccessKind     = runconfig.AccessKind
	AccessKindInfo = runconfig.AccessKindInfo
	ConfigChange   = runconfig.ConfigChange
	CopyBinds      = runconfig.CopyBinds
	CopyVolumes    = runconfig.CopyVolumes
	RestoreOptions = runconfig.RestoreOptions
	Start          = runconfig.Start
)

var (
	AccessKinds     = runconfig.AccessKinds
	CheckVolumeName = runconfig.CheckVolumeName
	ParseAccess     = runconfig.ParseAccess
)

const (
	PurgeKey         = removal.PurgeKey
	PurgeSnapshot    = removal.PurgeSnapshot
	PurgeStore       = removal.PurgeStore
	PurgeTag         = removal.PurgeTag
	PurgeWorker      = removal.PurgeWorker
	PurgeWorkerImage = removal.PurgeWorkerImage
)

type (
	InterruptedError = removal.InterruptedError
	PurgeKind        = removal.PurgeKind
	Purgeable        = removal.Purgeable
	Removal          = removal.Removal
	RemoveOptions    = removal.Options
)

type (
	Guard   = dockerop.Guard
	Watched = dockerop.Watched
)

const (
	PauseAll    = capture.PauseAll
	PauseNone   = capture.PauseNone
	PauseTarget = capture.PauseTarget
)

type (
	CreateOptions   = capture.Options
	Created         = capture.Created
	LeftFrozenError = capture.LeftFrozenError
	Pause           = capture.Pause
	VolumeChoice    = capture.VolumeChoice
)

type Restored = build.Restored

const (
	DefaultHealthTimeout = replace.DefaultHealthTimeout
	DefaultSettle        = replace.DefaultSettle
)

type (
	Count               = replace.Count
	InUseError          = replace.InUseError
	NotReadyError       = replace.NotReadyError
	NotStartedError     = replace.NotStartedError
	PendingError        = replace.PendingError
	Recovery            = replace.Recovery
	ReplaceOptions      = replace.Options
	Replaced            = replace.Result
	UndoError           = replace.UndoError
	UnknownJournalError = replace.UnknownJournalError
	VolumeChange        = replace.VolumeChange
)
