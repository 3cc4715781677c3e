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

const LevelNote = plan.LevelNote
const LevelStatus = plan.LevelStatus
const LevelWarning = plan.LevelWarning
const OpConnectNetwork = plan.OpConnectNetwork
const OpCreateAnonymous = plan.OpCreateAnonymous
const OpCreateContainer = plan.OpCreateContainer
const OpCreateSnapshot = plan.OpCreateSnapshot
const OpCreateVolume = plan.OpCreateVolume
const OpLeaveOut = plan.OpLeaveOut
const OpPauseContainer = plan.OpPauseContainer
const OpRemoveContainer = plan.OpRemoveContainer
const OpRenameContainer = plan.OpRenameContainer
const OpReplacePort = plan.OpReplacePort
const OpRestoreVolume = plan.OpRestoreVolume
const OpStartContainer = plan.OpStartContainer
const OpStopContainer = plan.OpStopContainer
const ProblemAddressTaken = plan.ProblemAddressTaken
const ProblemArchive = plan.ProblemArchive
const ProblemDead = plan.ProblemDead
const ProblemDependent = plan.ProblemDependent
const ProblemHostAccess = plan.ProblemHostAccess
const ProblemNameTaken = plan.ProblemNameTaken
const ProblemNoArchive = plan.ProblemNoArchive
const ProblemNoBindSource = plan.ProblemNoBindSource
const ProblemNoContainer = plan.ProblemNoContainer
const ProblemNoDevice = plan.ProblemNoDevice
const ProblemNoNetwork = plan.ProblemNoNetwork
const ProblemNoRuntime = plan.ProblemNoRuntime
const ProblemNoSpace = plan.ProblemNoSpace
const ProblemNoVolume = plan.ProblemNoVolume
const ProblemNotHeld = plan.ProblemNotHeld
const ProblemOneShot = plan.ProblemOneShot
const ProblemOtherOneShot = plan.ProblemOtherOneShot
const ProblemPortTaken = plan.ProblemPortTaken
const ProblemRenamed = plan.ProblemRenamed
const ProblemUnsaved = plan.ProblemUnsaved
const ProblemVolumeInUse = plan.ProblemVolumeInUse

type Event = plan.Event
type Level = plan.Level
type Op = plan.Op
type Plan = plan.Plan
type Problem = plan.Problem
type ProblemKind = plan.ProblemKind
type ProblemsError = plan.ProblemsError
type Progress = plan.Progress
type Step = plan.Step
type Timing = plan.Timing
type Timings = plan.Timings

type Containers = dockerop.Containers
type Docker = dockerop.Docker
type FreezeError = dockerop.FreezeError
type Host = dockerop.Host
type Images = dockerop.Images
type Lifecycle = dockerop.Lifecycle

const SortCreated = catalog.SortCreated
const SortName = catalog.SortName
const SortSize = catalog.SortSize

type AmbiguousError = catalog.AmbiguousError
type Candidate = catalog.Candidate
type Filter = catalog.Filter
type ListOptions = catalog.ListOptions
type NameTakenError = catalog.NameTakenError
type NotFoundError = catalog.NotFoundError
type PinnedError = catalog.PinnedError
type Service = catalog.Service
type Snapshot = catalog.Snapshot
type Sort = catalog.Sort

var FilterKeys = catalog.FilterKeys
var ParseDuration = catalog.ParseDuration
var ParseFilter = catalog.ParseFilter
var Repository = catalog.Repository

type VolumeBackup = archives.Backup
type VolumeLock = archives.Lock
type VolumeStore = archives.Store
type VolumeWorker = archives.Worker
type VolumeWorkers = archives.Workers
type Volumes = archives.Service

var Archives = archives.Of

const AccessBind = runconfig.AccessBind
const BindsNone = runconfig.BindsNone
const BindsReadOnly = runconfig.BindsReadOnly
const BindsShared = runconfig.BindsShared
const ConfigEnvironment = runconfig.ConfigEnvironment
const ConfigImage = runconfig.ConfigImage
const ConfigMount = runconfig.ConfigMount
const ConfigPort = runconfig.ConfigPort
const StartAlways = runconfig.StartAlways
const StartAsCaptured = runconfig.StartAsCaptured
const StartNever = runconfig.StartNever
const VolumesNew = runconfig.VolumesNew
const VolumesNone = runconfig.VolumesNone
const VolumesShared = runconfig.VolumesShared

type Access = runconfig.Access
type AccessKind = runconfig.AccessKind
type AccessKindInfo = runconfig.AccessKindInfo
type ConfigChange = runconfig.ConfigChange
type CopyBinds = runconfig.CopyBinds
type CopyVolumes = runconfig.CopyVolumes
type RestoreOptions = runconfig.RestoreOptions
type Start = runconfig.Start

var AccessKinds = runconfig.AccessKinds
var CheckVolumeName = runconfig.CheckVolumeName
var ParseAccess = runconfig.ParseAccess

const PurgeKey = removal.PurgeKey
const PurgeSnapshot = removal.PurgeSnapshot
const PurgeStore = removal.PurgeStore
const PurgeTag = removal.PurgeTag
const PurgeWorker = removal.PurgeWorker
const PurgeWorkerImage = removal.PurgeWorkerImage

type InterruptedError = removal.InterruptedError
type PurgeKind = removal.PurgeKind
type Purgeable = removal.Purgeable
type Removal = removal.Removal
type RemoveOptions = removal.Options

type Guard = dockerop.Guard
type Watched = dockerop.Watched

const PauseAll = capture.PauseAll
const PauseNone = capture.PauseNone
const PauseTarget = capture.PauseTarget

type CreateOptions = capture.Options
type Created = capture.Created
type LeftFrozenError = capture.LeftFrozenError
type Pause = capture.Pause
type VolumeChoice = capture.VolumeChoice

type Restored = build.Restored

const DefaultHealthTimeout = replace.DefaultHealthTimeout
const DefaultSettle = replace.DefaultSettle

type Count = replace.Count
type NotReadyError = replace.NotReadyError
type NotStartedError = replace.NotStartedError
type PendingError = replace.PendingError
type Recovery = replace.Recovery
type ReplaceOptions = replace.Options
type Replaced = replace.Result
type UndoError = replace.UndoError
type UnknownJournalError = replace.UnknownJournalError
type VolumeChange = replace.VolumeChange
