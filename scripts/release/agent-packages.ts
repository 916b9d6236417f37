/**
 * The agent for machines with Linux, with its Node.js beside it: an archive with an installer, and a Debian package.
 *
 * A single executable of Node.js would be one file, too. An update of the agent would then be 120 MB instead of 0.7.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildAgent } from '../build-agent.ts';
import { FILE_SECONDS, packFolder } from './archive.ts';
import { ROOT } from './manifest.ts';
import { type Architecture, nodeFolder } from './node-binaries.ts';

const DEBIAN_ARCHITECTURE: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };
const MAINTAINED_BY = 'Nodekeeper authors <authors@nodekeeper.dev>';
const LIBRARY = 'usr/lib/nodekeeper-agent';
/** GLIBC of Debian 10 and later, and of Raspberry Pi OS. What the release of Node.js is built for. */
const DEPENDS = 'libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1 | libgcc1';

/** @returns the path of the archive `nodekeeper-agent-VERSION-linux-ARCHITECTURE.tar.gz` */
export async function packAgentArchive(work: string, out: string, version: string, architecture: Architecture) {
  const name = `nodekeeper-agent-${version}-linux-${architecture}`;
  const folder = join(work, name);
  await writeAgent(folder, version, architecture);
  const archive = join(out, `${name}.tar.gz`);
  packFolder(work, name, archive);
  rmSync(folder, { recursive: true });
  return archive;
}

/**
 * @param level of gzip: 1 needs a third of the CPU, for tests. The Node.js in the package has 120 MB.
 * @returns the path of the package `nodekeeper-agent_VERSION_ARCHITECTURE.deb`
 */
export async function packAgentDeb(
  work: string,
  out: string,
  version: string,
  architecture: Architecture,
  level = 6,
): Promise<string> {
  const root = join(work, 'deb');
  const library = join(root, LIBRARY);
  await writeAgent(library, version, architecture);
  const units = join(root, 'usr/lib/systemd/system');
  mkdirSync(units, { recursive: true });
  for (const unit of ['nodekeeper-agent.service', 'nodekeeper-pods.service']) {
    writeFileSync(join(units, unit), packagedUnit(readFileSync(join(library, unit), 'utf8')));
    rmSync(join(library, unit));
  }
  for (const [command, program] of Object.entries(COMMANDS)) writeProgram(join(root, 'usr/bin', command), program);
  const documents = join(root, 'usr/share/doc/nodekeeper-agent');
  mkdirSync(documents, { recursive: true });
  rmSync(join(library, 'LICENSE'));
  rmSync(join(library, 'LICENSE.node'));
  writeFileSync(join(documents, 'copyright'), copyright(architecture));
  writeFileSync(join(documents, 'changelog.gz'), gzipSync(changelog(version), { level: 9 }));
  const overrides = join(root, 'usr/share/lintian/overrides');
  mkdirSync(overrides, { recursive: true });
  writeFileSync(join(overrides, 'nodekeeper-agent'), OVERRIDES);
  writeControl(root, version, architecture);
  const file = join(out, `nodekeeper-agent_${version}_${DEBIAN_ARCHITECTURE[architecture]}.deb`);
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(FILE_SECONDS) };
  const options = ['--root-owner-group', '-Zgzip', `-z${level}`];
  execFileSync('dpkg-deb', [...options, '--build', root, file], { env, stdio: 'pipe' });
  rmSync(root, { recursive: true });
  return file;
}

/** Agent, installer, units, Node.js and both licences. */
async function writeAgent(folder: string, version: string, architecture: Architecture): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  await buildAgent(folder, version);
  const node = nodeFolder(architecture);
  cpSync(join(node, 'bin/node'), join(folder, 'node'));
  cpSync(join(node, 'LICENSE'), join(folder, 'LICENSE.node'));
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
}

/** The unit of the package does nothing until the machine is set up. */
const packagedUnit = (text: string): string =>
  text
    .replace('ExecStart=/usr/bin/env node ', `ExecStart=/${LIBRARY}/node `)
    .replace('/usr/local/lib/nodekeeper/start-agent.mjs', `/${LIBRARY}/start-agent.mjs`)
    .replace(/^(After=.*nodekeeper-pods\.service)$/m, '$1\nConditionPathExists=/etc/nodekeeper/agent.yaml');

const COMMANDS: Readonly<Record<string, string>> = {
  'nodekeeper-agent': `exec /${LIBRARY}/node /${LIBRARY}/start-agent.mjs "$@"`,
  'nodekeeper-agent-setup': `exec /${LIBRARY}/install.sh "$@"`,
};

/** What dpkg runs. Each may run twice, and after a failure of the one before. */
const MAINTAINER: Readonly<Record<string, string>> = {
  // The version that is installed now starts, not the one of an earlier update.
  postinst: `if [ "$1" = configure ]; then
  rm -f /var/lib/nodekeeper/agents/trial.json /var/lib/nodekeeper/agents/current
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ -e /etc/nodekeeper/agent.yaml ]; then systemctl restart nodekeeper-agent.service; fi
  fi
fi`,
  prerm: `if [ "$1" = remove ]; then /${LIBRARY}/install.sh --uninstall; fi`,
  // The state may be on a disk of its own, which stays mounted.
  postrm: `if [ "$1" = purge ]; then
  rm -rf /etc/nodekeeper
  if [ -d /var/lib/nodekeeper ]; then
    find /var/lib/nodekeeper -mindepth 1 -delete
    rmdir /var/lib/nodekeeper 2>/dev/null || true
  fi
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi`,
};

const OVERRIDES = `# The release of Node.js as its project builds it, with libraries of its own.
nodekeeper-agent: embedded-library *
nodekeeper-agent: unstripped-binary-or-object *
nodekeeper-agent: hardening-no-pie *
nodekeeper-agent: hardening-no-bindnow *
nodekeeper-agent: hardening-no-fortify-functions *
nodekeeper-agent: spelling-error-in-binary *
nodekeeper-agent: unusual-interpreter *
# Its licence has those of its libraries, in full.
nodekeeper-agent: copyright-file-contains-full-apache-2-license *
nodekeeper-agent: old-fsf-address-in-copyright-file *
# The Node.js of this package runs them. As files of their own they run under that of the machine.
nodekeeper-agent: missing-dep-for-interpreter *
# The commands print their options with --help.
nodekeeper-agent: no-manual-page *
# The release of this project, not of Debian.
nodekeeper-agent: initial-upload-closes-no-bugs *
nodekeeper-agent: no-changelog *
nodekeeper-agent: wrong-name-for-upstream-changelog *
# The installer is run by the package, and by people through nodekeeper-agent-setup. It decides when to start.
nodekeeper-agent: maintainer-script-calls-systemctl *
`;

function writeControl(root: string, version: string, architecture: Architecture): void {
  const control = join(root, 'DEBIAN');
  mkdirSync(control);
  const kilobytes = Math.ceil(Number(execFileSync('du', ['-sb', root], { encoding: 'utf8' }).split('\t')[0]) / 1_024);
  writeFileSync(
    join(control, 'control'),
    `Package: nodekeeper-agent
Version: ${version}
Architecture: ${DEBIAN_ARCHITECTURE[architecture]}
Maintainer: ${MAINTAINED_BY}
Installed-Size: ${kilobytes}
Depends: ${DEPENDS}
Recommends: dbus, podman
Suggests: nftables, iproute2
Section: admin
Priority: optional
Homepage: https://nodekeeper.dev
Description: makes this machine a node of a Nodekeeper cluster
 The agent registers the machine, sends heartbeats, runs pods and shuts the
 machine down gracefully. nodekeeper-agent-setup connects it with a cluster.
`,
  );
  for (const [name, text] of Object.entries(MAINTAINER)) writeProgram(join(control, name), `set -e\n${text}`);
}

function writeProgram(path: string, text: string): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

/** In the form that dpkg reads. */
const changelog = (version: string): string => `nodekeeper-agent (${version}) stable; urgency=medium

  * The changes of each release are in CHANGELOG.md of the project.

 -- ${MAINTAINED_BY}  ${new Date(FILE_SECONDS * 1_000).toUTCString().replace('GMT', '+0000')}
`;

const copyright = (architecture: Architecture): string =>
  `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: Nodekeeper authors
License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.

Files: ${LIBRARY}/node
Copyright: Node.js contributors, and others as listed below
License: Node.js
${indented(readFileSync(join(nodeFolder(architecture), 'LICENSE'), 'utf8'))}
`;

/** A field of the format: an empty line is a dot. */
const indented = (text: string): string =>
  text
    .trim()
    .split('\n')
    .map((line) => (line.trim() === '' ? ' .' : ` ${line}`))
    .join('\n');
