/**
 * The image of `nodekeeper serve` as an archive of an OCI layout, built without a daemon by umoci(1): the C library of
 * Debian, Node.js, and the program. It has no shell. Its user is not root, and it writes to /data alone.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_FLAGS } from '../../shared/config/serve-flags.mjs';
import { FILE_SECONDS, packContent } from './archive.ts';
import { type Architecture, nodeFolder } from './node-binaries.ts';

const DEBIAN: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' };
/** Of the architecture of OCI, which has Go's names. */
const OCI = DEBIAN;
/** What Node.js links to. */
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6'];
const USER = 65_532;
const PROGRAM = '/opt/nodekeeper/bin/start.mjs';

export interface ImageParts {
  readonly work: string;
  readonly out: string;
  readonly version: string;
  readonly architecture: Architecture;
  /** Folder of the package `nodekeeper`, as built. */
  readonly program: string;
}

/** @returns the path of the archive `nodekeeper-image-VERSION-ARCHITECTURE.tar`, for `podman load` */
export function packImage({ work, out, version, architecture, program }: ImageParts): string {
  const name = `nodekeeper-image-${version}-${OCI[architecture]}`;
  const layout = join(work, name);
  rmSync(layout, { recursive: true, force: true });
  umoci('init', '--layout', layout);
  // `podman load` names the image as the tag says.
  const image = `${layout}:nodekeeper:${version}`;
  umoci('new', '--image', image);
  const layers = [
    baseLayer(work, architecture),
    nodeLayer(work, architecture),
    programLayer(work, program),
    dataLayer(work),
  ];
  for (const layer of layers) {
    umoci('raw', 'add-layer', '--image', image, '--history.created', CREATED, layer);
    rmSync(layer);
  }
  umoci(
    'config',
    ...['--image', image, '--no-history', '--created', CREATED, '--os', 'linux', '--architecture', OCI[architecture]],
    ...['--author', 'Nodekeeper authors', '--config.user', `${USER}:${USER}`, '--config.workingdir', '/data'],
    ...['/usr/bin/node', ...NODE_FLAGS, PROGRAM].flatMap((word) => ['--config.entrypoint', word]),
    ...['--data', '/data'].flatMap((word) => ['--config.cmd', word]),
    ...['--config.volume', '/data', '--config.exposedports', '6443/tcp', '--config.stopsignal', 'SIGTERM'],
    ...['--config.env', 'MALLOC_ARENA_MAX=2', '--config.label', `org.opencontainers.image.version=${version}`],
  );
  // Every change of umoci leaves the blobs of the image before it.
  umoci('gc', '--layout', layout);
  // The layers are compressed.
  const archive = join(out, `${name}.tar`);
  packContent(layout, archive);
  rmSync(layout, { recursive: true });
  return archive;
}

const CREATED = new Date(FILE_SECONDS * 1_000).toISOString();

const umoci = (...args: readonly string[]): void => void execFileSync('umoci', args, { stdio: 'pipe' });

/** Fills a new folder. @returns its archive */
function layerOf(work: string, name: string, fill: (root: string) => void, owner = 0): string {
  const root = join(work, `layer-${name}`);
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
  layerOf(work, 'base', (root) => {
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
  layerOf(work, 'node', (root) => {
    mkdirSync(join(root, 'usr/bin'), { recursive: true });
    mkdirSync(join(root, 'usr/share/doc/node'), { recursive: true });
    cpSync(join(nodeFolder(architecture), 'bin/node'), join(root, 'usr/bin/node'));
    cpSync(join(nodeFolder(architecture), 'LICENSE'), join(root, 'usr/share/doc/node/copyright'));
  });

const programLayer = (work: string, program: string): string =>
  layerOf(work, 'program', (root) => cpSync(program, join(root, 'opt/nodekeeper'), { recursive: true }));

/** A volume that a container gets without a name has the owner of this folder. */
const dataLayer = (work: string): string => layerOf(work, 'data', (root) => mkdirSync(join(root, 'data')), USER);
