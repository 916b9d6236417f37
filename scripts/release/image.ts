/**
 * The images of `nodekeeper serve` and of the agent as archives of OCI layouts, built without a daemon by umoci(1): the
 * C library of Debian, Node.js, and the program. They have no shell. Their user is not root, and they write to
 * /data alone.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_FLAGS } from '../../shared/config/serve-flags.mjs';
import { buildAgent } from '../build-agent.ts';
import { FILE_SECONDS, packContent } from './archive.ts';
import { type Architecture, nodeFolder } from './node-binaries.ts';

const DEBIAN: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };
/** Of the architecture of OCI, which has Go's names. */
const OCI = DEBIAN;
/** What Node.js links to. */
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6'];
const USER = 65_532;
/** The only folder that they write to: a volume. */
const DATA = '/data';

/** What is in an image besides the libraries and Node.js. */
interface Contents {
  /** Of the image, as `podman load` names it. */
  readonly name: string;
  /** What Node.js runs: its flags, and the file of /opt/nodekeeper. */
  readonly program: readonly string[];
  readonly arguments: readonly string[];
  readonly port?: string;
  readonly environment: readonly string[];
}

const CONTENTS = {
  serve: {
    name: 'nodekeeper',
    program: [...NODE_FLAGS, '/opt/nodekeeper/bin/start.mjs'],
    arguments: ['--data', DATA],
    port: '6443/tcp',
    environment: ['MALLOC_ARENA_MAX=2'],
  },
  // Flags and environment are those of its systemd unit. It does not update itself: another image does.
  agent: {
    name: 'nodekeeper-agent',
    program: ['--lite-mode', '--max-semi-space-size=1', '/opt/nodekeeper/nodekeeper-agent.mjs'],
    arguments: ['--config', '/etc/nodekeeper/agent.yaml', '--root-dir', DATA],
    environment: ['MALLOC_ARENA_MAX=1', 'MALLOC_MMAP_THRESHOLD_=65536', 'MALLOC_TRIM_THRESHOLD_=65536'],
  },
} as const satisfies Record<string, Contents>;

export interface ImageParts {
  readonly work: string;
  readonly out: string;
  readonly version: string;
  readonly architecture: Architecture;
  readonly contents: keyof typeof CONTENTS;
  /** Folder of the program, as built. */
  readonly program: string;
}

/** @returns the path of the archive `nodekeeper[-agent]-image-VERSION-ARCHITECTURE.tar`, for `podman load` */
export function packImage({ work, out, version, architecture, contents, program }: ImageParts): string {
  const image: Contents = CONTENTS[contents];
  const name = `${image.name}-image-${version}-${OCI[architecture]}`;
  const layout = join(work, name);
  rmSync(layout, { recursive: true, force: true });
  umoci('init', '--layout', layout);
  // `podman load` names the image as the tag says.
  const tag = `${layout}:${image.name}:${version}`;
  umoci('new', '--image', tag);
  const layers = [
    baseLayer(work, architecture),
    nodeLayer(work, architecture),
    layerOf(work, contents, (root) => cpSync(program, join(root, 'opt/nodekeeper'), { recursive: true })),
    dataLayer(work),
  ];
  for (const layer of layers) umoci('raw', 'add-layer', '--image', tag, '--history.created', CREATED, layer);
  umoci(
    'config',
    ...['--image', tag, '--no-history', '--created', CREATED, '--os', 'linux', '--architecture', OCI[architecture]],
    ...['--author', 'Nodekeeper authors', '--config.user', `${USER}:${USER}`, '--config.workingdir', DATA],
    ...['/usr/bin/node', ...image.program].flatMap((word) => ['--config.entrypoint', word]),
    ...image.arguments.flatMap((word) => ['--config.cmd', word]),
    ...['--config.volume', DATA, '--config.stopsignal', 'SIGTERM'],
    ...(image.port === undefined ? [] : ['--config.exposedports', image.port]),
    ...image.environment.flatMap((variable) => ['--config.env', variable]),
    ...['--config.label', `org.opencontainers.image.version=${version}`],
  );
  // Every change of umoci leaves the blobs of the image before it.
  umoci('gc', '--layout', layout);
  // The layers are compressed.
  const archive = join(out, `${name}.tar`);
  packContent(layout, archive);
  rmSync(layout, { recursive: true });
  return archive;
}

/** Fills a folder with the agent, without what installs and updates it on a machine. */
export async function buildAgentProgram(folder: string, version: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  await buildAgent(folder, version);
  for (const name of readdirSync(folder)) if (name !== 'nodekeeper-agent.mjs') rmSync(join(folder, name));
}

const CREATED = new Date(FILE_SECONDS * 1_000).toISOString();

const umoci = (...args: readonly string[]): void => void execFileSync('umoci', args, { stdio: 'pipe' });

/** Fills a new folder, unless an image of the same `work` has this layer. @returns its archive */
function layerOf(work: string, name: string, fill: (root: string) => void, owner = 0): string {
  const root = join(work, `layer-${name}`);
  if (existsSync(`${root}.tar`)) return `${root}.tar`;
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  fill(root);
  const archive = `${root}.tar`;
  packContent(root, archive, owner);
  rmSync(root, { recursive: true });
  return archive;
}

/** Libraries of Debian, without what only a person reads; the user, and its folder. */
const baseLayer = (work: string, architecture: Architecture): string =>
  layerOf(work, `base-${architecture}`, (root) => {
    const packages = join(work, 'packages');
    rmSync(packages, { recursive: true, force: true });
    mkdirSync(join(packages, 'state/lists/partial'), { recursive: true });
    mkdirSync(join(packages, 'cache/archives/partial'), { recursive: true });
    // A list of packages of its own: that of this machine has its own architecture alone.
    const options = [
      `APT::Architecture=${DEBIAN[architecture]}`,
      `APT::Architectures::=${DEBIAN[architecture]}`,
      `Dir::State=${packages}/state`,
      'Dir::State::status=/dev/null',
      `Dir::Cache=${packages}/cache`,
      'APT::Sandbox::User=root',
    ].flatMap((option) => ['-o', option]);
    execFileSync('apt-get', [...options, '-qq', 'update'], { stdio: 'pipe' });
    execFileSync('apt-get', [...options, '-qq', 'download', ...LIBRARIES], { cwd: packages, stdio: 'pipe' });
    for (const file of readdirSync(packages).filter((each) => each.endsWith('.deb'))) {
      execFileSync('dpkg-deb', ['--extract', join(packages, file), root]);
    }
    for (const folder of ['usr/share/lintian', 'usr/share/gcc', 'usr/share/gdb', 'usr/share/man', 'usr/lib/locale']) {
      rmSync(join(root, folder), { recursive: true, force: true });
    }
    mkdirSync(join(root, 'etc'), { recursive: true });
    writeFileSync(join(root, 'etc/passwd'), `nodekeeper:x:${USER}:${USER}::/data:/usr/sbin/nologin\n`);
    writeFileSync(join(root, 'etc/group'), `nodekeeper:x:${USER}:\n`);
  });

const nodeLayer = (work: string, architecture: Architecture): string =>
  layerOf(work, `node-${architecture}`, (root) => {
    mkdirSync(join(root, 'usr/bin'), { recursive: true });
    mkdirSync(join(root, 'usr/share/doc/node'), { recursive: true });
    cpSync(join(nodeFolder(architecture), 'bin/node'), join(root, 'usr/bin/node'));
    cpSync(join(nodeFolder(architecture), 'LICENSE'), join(root, 'usr/share/doc/node/copyright'));
  });

/** A volume that a container gets without a name has the owner of this folder. */
const dataLayer = (work: string): string => layerOf(work, 'data', (root) => mkdirSync(join(root, DATA)), USER);
