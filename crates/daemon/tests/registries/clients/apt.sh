#!/usr/bin/env bash
# apt-get: an update, and two packages that are downloaded, not installed. It reads and writes nothing of the system's.
# PLAIN=1 asks the archive itself without TLS.
. "$(dirname "$0")/common.sh"

scheme=https
[[ -z ${PLAIN:-} ]] || scheme=http
archive=${MIRROR:+$MIRROR/apt/}
archive=${archive:-$scheme://}deb.debian.org/debian
mkdir -p etc/apt/{sources.list.d,preferences.d,apt.conf.d,trusted.gpg.d} var/lib/apt/lists/partial var/cache/apt/archives/partial
: >status
printf 'deb [trusted=yes arch=amd64] %s %s main\n' "$archive" "${SUITE:-stable}" >etc/apt/sources.list
cat >apt.conf <<END
Dir "$HOME";
Dir::State::status "$HOME/status";
Dir::Etc::main "/dev/null";
Dir::Log "$HOME/log";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::https::CAInfo "$CA";
Acquire::Retries "0";
DPkg::Use-Pty "0";
END
export APT_CONFIG=$HOME/apt.conf
apt-get -q update --error-on=any >&2
[[ ${ONLY:-} == update ]] || apt-get -q -y --download-only install ${PACKAGES:-hearsay-alpha} >&2
[[ ${ONLY:-} == update ]] || sums var/cache/apt/archives/*.deb
