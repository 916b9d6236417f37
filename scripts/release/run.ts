/**
 * npm run release -- --version X [--out DIR] [--key FILE] [--only NAME,…]
 *
 * Builds what users install, into dist/release/X: packages of npm, the agent for Linux as archives and Debian packages,
 * the list of parts of each (CycloneDX), the installer that verifies them, and SHA256SUMS, signed with minisign where
 * `--key` names a key. Two builds of one commit are equal byte by byte.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { functionList } from '../../functions/function-list.ts';
import { NODEKEEPER_VERSION } from '../../shared/config/version.ts';
import { packAgentArchive, packAgentDeb } from './agent-packages.ts';
import { buildConstruct } from './construct.ts';
import { buildAgentProgram, packImage } from './image.ts';
import { type Manifest, ROOT, readManifest } from './manifest.ts';
import { ARCHITECTURES, NODE_VERSION } from './node-binaries.ts';
import { buildProgram, PROGRAMS } from './program.ts';
import { bundledPackages, softwareBill } from './sbom.ts';
import { packTerraformModule } from './terraform/build.ts';

const USAGE = `Usage: npm run release -- --version X [--out DIR] [--key FILE] [--only NAME,…]

  --version X      the release: package.json, shared/config/version.ts and CHANGELOG.md must name it
  --out DIR        directory of the files, which must not exist (dist/release/X)
  --key FILE       secret key of minisign, which signs SHA256SUMS; without it nothing is signed
  --only NAME,…    some of: program, images, construct, terraform, agent-archives, agent-debs
`;

interface Task {
  readonly work: string;
  readonly out: string;
  readonly manifest: Manifest;
}

/** What each writes into `out`. @returns the paths, each with the sources that its list of parts is made from */
const ARTEFACTS: Readonly<Record<string, (task: Task) => Promise<readonly Built[]>>> = {
  program: async ({ work, out, manifest }) => {
    const folder = join(work, 'program');
    await buildProgram(folder, manifest);
    return [{ file: packNpm(folder, out), sources: SERVE }];
  },
  images: async ({ work, out, manifest }) => {
    const { version } = manifest;
    const program = join(work, 'program');
    await buildProgram(program, manifest);
    const agent = join(work, 'agent');
    await buildAgentProgram(agent, version);
    return ARCHITECTURES.flatMap((architecture) => {
      const parts = { work, out, version, architecture };
      return [
        { file: packImage({ ...parts, contents: 'serve', program }), sources: SERVE, node: NODE_VERSION },
        { file: packImage({ ...parts, contents: 'agent', program: agent }), sources: AGENT, node: NODE_VERSION },
      ];
    });
  },
  construct: async ({ work, out, manifest }) => {
    const folder = join(work, 'construct');
    buildConstruct(folder, manifest);
    return [{ file: packNpm(folder, out), sources: ['cdk/index.ts', ...HANDLERS] }];
  },
  terraform: async ({ work, out, manifest: { version } }) => [
    { file: packTerraformModule(work, out, version), sources: HANDLERS },
  ],
  'agent-archives': async ({ work, out, manifest: { version } }) => {
    const built: Built[] = [];
    copyFileSync(join(ROOT, INSTALLER), join(out, basename(INSTALLER)));
    for (const architecture of ARCHITECTURES) {
      built.push({
        file: await packAgentArchive(work, out, version, architecture),
        sources: AGENT,
        node: NODE_VERSION,
      });
    }
    return built;
  },
  'agent-debs': async ({ work, out, manifest: { version } }) => {
    const built: Built[] = [];
    for (const architecture of ARCHITECTURES) {
      built.push({ file: await packAgentDeb(work, out, version, architecture), sources: AGENT, node: NODE_VERSION });
    }
    return built;
  },
};

/** Verifies the other files, and installs the agent. Has no parts of others. */
const INSTALLER = 'agent/packaging/install-release.sh';

interface Built {
  readonly file: string;
  readonly sources: readonly string[];
  readonly node?: string;
}

const HANDLERS = functionList.map(({ name }) => `functions/${name}/handler.ts`);
const AGENT = ['agent/bin/start-agent.ts', 'agent/bin/nodekeeper-agent.ts'];
/** The package has the agent for its demonstration. */
const SERVE = [...Object.values(PROGRAMS), 'console/page/main.ts', ...AGENT];

/** npm sets one time and owner for all files. @returns the path of the package */
const packNpm = (folder: string, out: string): string => {
  const pack = ['pack', '--offline', '--silent', '--pack-destination', out];
  return join(out, execFileSync('npm', pack, { cwd: folder, encoding: 'utf8' }).trim());
};

/** @throws ReleaseError for a version that the sources do not name */
function requireVersion(version: string, manifest: Manifest): void {
  const named: readonly (readonly [string, boolean])[] = [
    [`package.json has version ${manifest.version}`, manifest.version === version],
    [`shared/config/version.ts has ${NODEKEEPER_VERSION}`, NODEKEEPER_VERSION === version],
    [
      `CHANGELOG.md has no heading "## ${version}, DATE"`,
      readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').includes(`\n## ${version}, `),
    ],
  ];
  const wrong = named.filter(([, isRight]) => !isRight).map(([text]) => text);
  if (wrong.length > 0) throw new ReleaseError(`--version ${version}: ${wrong.join('; ')}`);
}

/** An expected failure: one line, exit code 1. */
class ReleaseError extends Error {
  override readonly name = 'ReleaseError';
}

async function release(): Promise<void> {
  const { values } = parseArgs({
    options: {
      version: { type: 'string' },
      out: { type: 'string' },
      key: { type: 'string' },
      only: { type: 'string', default: Object.keys(ARTEFACTS).join() },
      help: { type: 'boolean', default: false },
    },
  });
  const { version, key } = values;
  if (values.help || version === undefined) {
    process.stdout.write(USAGE);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const names = values.only.split(',');
  const unknown = names.filter((name) => !Object.hasOwn(ARTEFACTS, name));
  if (unknown.length > 0) throw new ReleaseError(`--only has no ${unknown.join()}: ${Object.keys(ARTEFACTS).join()}`);
  const manifest = readManifest();
  requireVersion(version, manifest);
  if (key !== undefined && !existsSync(key)) throw new ReleaseError(`--key ${key}: there is no such file`);
  const out = resolve(values.out ?? join(ROOT, 'dist/release', version));
  if (existsSync(out)) throw new ReleaseError(`--out ${out} exists; a release is not mixed with another one`);
  const unfinished = `${out}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'nodekeeper-release-'));
  try {
    for (const name of names) await writeArtefact(name, { work, out: unfinished, manifest });
    writeSums(unfinished, version, key);
    execFileSync('mv', [unfinished, out]);
  } finally {
    rmSync(work, { recursive: true, force: true });
    rmSync(unfinished, { recursive: true, force: true });
  }
  console.log(out);
}

async function writeArtefact(name: string, task: Task): Promise<void> {
  const { version } = task.manifest;
  for (const { file, sources, node } of await ARTEFACTS[name]!(task)) {
    const packages = await bundledPackages(sources);
    const bill = softwareBill({ name: basename(file), version, packages, ...(node === undefined ? {} : { node }) });
    writeFileSync(`${file}.cdx.json`, `${JSON.stringify(bill, undefined, 2)}\n`);
    console.log(`${basename(file)}  ${(readFileSync(file).length / 1_000_000).toFixed(1)} MB`);
  }
}

/** SHA256SUMS as sha256sum(1) reads it, and its signature as `minisign -V` does. */
function writeSums(out: string, version: string, key: string | undefined): void {
  const lines = readdirSync(out)
    .toSorted()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(out, name)))
          .digest('hex')}  ${name}`,
    );
  const sums = join(out, 'SHA256SUMS');
  writeFileSync(sums, `${lines.join('\n')}\n`);
  if (key === undefined) return;
  // A comment with a time would make each signature another one.
  execFileSync('minisign', ['-S', '-s', key, '-m', sums, '-t', `nodekeeper ${version}`], {
    stdio: ['inherit', 'pipe', 'pipe'],
  });
}

try {
  await release();
} catch (error) {
  if (!(error instanceof ReleaseError)) throw error;
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}
