# Installs isolet on Windows, where it runs in WSL: isolet itself is for Linux.
#
# With a Linux distribution in WSL this runs install.sh there. Without one, it prints how to get it,
# and the line that runs isolet in a container. It changes nothing of Windows itself.
param(
    [string] $Version = '',
    [string] $Distribution = '',
    [switch] $Science,
    [switch] $Uninstall,
    [switch] $Purge
)
$ErrorActionPreference = 'Stop'
$Latest = 'https://github.com/isolet/isolet/releases/latest/download/install.sh'

function Show-Container {
    Write-Output 'In a container, with Docker or Podman and an image that you have built:'
    Write-Output '  docker run --rm -it --entrypoint isolet isolet:0.1.0 repl'
    Write-Output '  https://github.com/isolet/isolet/blob/main/deploy/container/README.md'
}

if (-not (Get-Command wsl.exe -ErrorAction SilentlyContinue)) {
    Write-Output 'isolet needs WSL, which this Windows does not have. To install it, as administrator:'
    Write-Output '  wsl --install'
    Show-Container
    exit 1
}

# Words for WSL: those of a distribution that is not the default come first.
$Words = @()
if ($Distribution) { $Words += @('--distribution', $Distribution) }
& wsl.exe @Words --exec /bin/true 2>$null | Out-Null
if ($LASTEXITCODE -ne 0) {
    Write-Output 'WSL has no Linux distribution that starts. To install one:'
    Write-Output '  wsl --install -d Debian'
    Show-Container
    exit 1
}

$Options = @()
if ($Version) { $Options += @('--version', $Version) }
if ($Science) { $Options += '--science' }
if ($Uninstall) { $Options += '--uninstall' }
if ($Purge) { $Options += '--purge' }
# The script is fetched first, and run only if it is whole. There are no double quotes in these
# words: Windows PowerShell 5.1 does not pass them on.
$Script = 'script=$(mktemp) && trap ''rm -f $script'' EXIT && ' +
    'if command -v curl >/dev/null; then curl -fsSL --proto =https -o $script $0; ' +
    'else wget -q -O $script $0; fi && sh $script $@'
& wsl.exe @Words --exec sh -c $Script $Latest @Options
if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
if (-not $Uninstall) {
    Write-Output 'From Windows, isolet is:'
    Write-Output ('  wsl ' + (($Words + @('--exec', 'sh', '-c', '"~/.local/bin/isolet repl"')) -join ' '))
}
