# install.ps1: installs the Docker CLI plugin "docker snapshot" on Windows, from the release that it lies in.
# "./install.sh --release DIR" makes a release.
#
#   ./install.ps1               for you: $env:DOCKER_CONFIG\cli-plugins, or .docker\cli-plugins in your home folder
#   ./install.ps1 -System       for everybody, as administrator: Docker\cli-plugins in the program folder
#   ./install.ps1 -Protect      also keeps docker's prune commands from removing snapshots: "docker snapshot protect"
#   ./install.ps1 -Uninstall    removes it; with -System, for everybody
#
# Where Windows does not run scripts: powershell -ExecutionPolicy Bypass -File install.ps1
param([switch]$System, [switch]$Protect, [switch]$Uninstall)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$config = if ($env:DOCKER_CONFIG) { $env:DOCKER_CONFIG } else { Join-Path $env:USERPROFILE '.docker' }
$programs = if ($env:ProgramW6432) { $env:ProgramW6432 } else { $env:ProgramFiles } # also if this PowerShell has 32 bits
$folder = if ($System) { Join-Path $programs 'Docker\cli-plugins' } else { Join-Path $config 'cli-plugins' }
$plugin = Join-Path $folder 'docker-snapshot.exe'

if ($Uninstall) {
    if (-not (Test-Path -LiteralPath $plugin)) { throw "there is no $plugin" }
    Remove-Item -LiteralPath $plugin
    Write-Output "Removed $plugin. On each engine that you used it with, these stay, and your snapshots with them:"
    Write-Output '  images cua-snapshot/*, volumes cua-snapshots and cua-snapshot-key, and stores that you named yourself'
    Write-Output 'To remove them for good, install it again and run "docker snapshot recover --purge". Or by hand:'
    Write-Output "  docker image rm --force `$(docker image ls --quiet --filter 'reference=cua-snapshot/*')"
    Write-Output '  docker volume rm cua-snapshots cua-snapshot-key'
    exit
}

if (-not (Get-Command docker -ErrorAction SilentlyContinue)) { throw 'the Docker CLI is missing. Install Docker Desktop, or the CLI alone' }
$architecture = switch ($env:PROCESSOR_ARCHITECTURE) { 'ARM64' { 'arm64' } default { 'amd64' } }
$program = "docker-snapshot-windows-$architecture.exe"
$source = Join-Path $PSScriptRoot $program
if (-not (Test-Path -LiteralPath $source)) { throw "there is no $source. Take this script from a release" }

# The first word of the program's line is its checksum.
$line = Get-Content -LiteralPath (Join-Path $PSScriptRoot 'SHA256SUMS') | Where-Object { $_.EndsWith($program) } | Select-Object -First 1
$sum = (Get-FileHash -LiteralPath $source -Algorithm SHA256).Hash
if (-not $line -or $line.Split(' ')[0] -ne $sum) { throw "$program is not what SHA256SUMS says: it is damaged, or incomplete" }

New-Item -ItemType Directory -Force -Path $folder | Out-Null
$new = "$plugin.new"
Copy-Item -LiteralPath $source -Destination $new
Move-Item -LiteralPath $new -Destination $plugin -Force
docker snapshot version
if ($LASTEXITCODE -ne 0) { throw "docker does not find the plugin in $folder" }
if ("$(docker snapshot version)" -ne "$(& $plugin version)") { throw "docker finds another docker-snapshot before ${plugin}: look into $(Join-Path $config 'cli-plugins')" }
Write-Output "Installed as $plugin. Begin with: docker snapshot --help"
if ($Protect) {
    docker snapshot protect | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "docker's prune commands do not leave snapshots alone" }
}
