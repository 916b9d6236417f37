/**
 * npm run agent:build [-- --platform linux|win32-x64]
 *
 * The agent and all its imports as one file, for machines that only have Node.js. For Windows the native part of koffi
 * is beside it.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Bytes that a slow link transfers in one minute. */
const BYTES_MAX = 2 * 1024 * 1024;

/**
 * An import statement makes Node evaluate every export of a built-in module. That of node:http loads fetch and
 * WebSocket: 5 MB of memory for unused code. Loaded as an object, only the used parts are evaluated.
 *
 * For an import statement the object is a module with an export per member. The bundle keeps the used members. As a
 * CommonJS module, each file that imports it would have an object of its own with a getter per member: 5,000 closures.
 */
const builtinsUnlinked: Plugin = {
  name: 'builtins-unlinked',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ path, kind }) => {
      if (!isBuiltin(path)) return undefined;
      return { path, namespace: kind === 'require-call' ? 'builtin-object' : 'builtin-members' };
    });
    onLoad({ filter: /.*/, namespace: 'builtin-object' }, ({ path }) => ({
      contents: `module.exports = ${builtin(path)};`,
    }));
    onLoad({ filter: /.*/, namespace: 'builtin-members' }, ({ path }) => ({ contents: membersOf(path) }));
  },
};

const builtin = (path: string): string => `process.getBuiltinModule(${JSON.stringify(path)})`;

/** The annotation permits the bundler to drop a member that nothing imports. */
function membersOf(path: string): string {
  const names = Object.keys(process.getBuiltinModule(path) ?? {}).filter((name) => /^[A-Za-z_]\w*$/.test(name));
  const members = names
    .filter((name) => name !== 'default')
    .map((name) => `const own_${name} = /* @__PURE__ */ (() => object.${name})(); export { own_${name} as ${name} };`);
  return [`const object = /* @__PURE__ */ (() => ${builtin(path)})(); export default object;`, ...members].join('\n');
}

/** The ES modules of the library, without its unused code. For Node it exports itself as a whole. */
const yamlInParts: Plugin = {
  name: 'yaml-in-parts',
  setup({ onResolve }) {
    const path = join(ROOT, 'node_modules/yaml/browser/dist/index.js');
    onResolve({ filter: /^yaml$/ }, () => ({ path }));
  },
};

/** The D-Bus library reads XML to discover the members of an object. We know them. */
const withoutXml: Plugin = {
  name: 'without-xml',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^xml2js$/ }, ({ path }) => ({ path, namespace: 'unused' }));
    onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
      contents: 'class Unused {} module.exports = { Builder: Unused, Parser: Unused };',
    }));
  },
};

/** The files beside the bundle. */
const PACKAGED = ['nodekeeper-agent.service', 'nodekeeper-pods.service', 'install.sh'];

/**
 * Builds the agent, and the program that starts it. Returns the path of the agent.
 *
 * @param release version of the agent; absent: that of package.json
 * @throws Error when a bundle is larger than it may be
 */
export async function buildAgent(directory: string, release = packageVersion()): Promise<string> {
  mkdirSync(directory, { recursive: true });
  await bundle('agent/bin/start-agent.ts', join(directory, 'start-agent.mjs'), release);
  const outfile = join(directory, 'nodekeeper-agent.mjs');
  await bundle('agent/bin/nodekeeper-agent.ts', outfile, release);
  for (const file of PACKAGED) cpSync(join(ROOT, 'agent/packaging', file), join(directory, file));
  return outfile;
}

const WINDOWS = 'win32-x64';
const KOFFI = '@koromix/koffi-win32-x64';
const KOFFI_FILE = 'win32_x64/koffi.node';

/**
 * Builds the agent for Windows: bundles, and the native part of koffi. Returns the path of the agent.
 *
 * @param archive of npm with that part; absent: it is downloaded
 */
export async function buildWindowsAgent(directory: string, archive?: string): Promise<string> {
  const release = packageVersion();
  mkdirSync(directory, { recursive: true });
  await bundle('agent/bin/start-agent.ts', join(directory, 'start-agent.mjs'), release);
  await bundle('agent/adapters/windows/service-worker.ts', join(directory, 'service-worker.mjs'), release);
  const outfile = join(directory, 'nodekeeper-agent.mjs');
  await bundle('agent/bin/nodekeeper-agent.ts', outfile, release);
  copyKoffi(join(directory, 'koffi.node'), archive);
  return outfile;
}

/** npm installs the package on Windows alone. Elsewhere it is downloaded, and compared with package-lock.json. */
function copyKoffi(target: string, given: string | undefined): void {
  const installed = join(ROOT, 'node_modules', KOFFI, KOFFI_FILE);
  if (existsSync(installed)) {
    cpSync(installed, target);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-koffi-'));
  try {
    const archive = koffiArchive(folder, given);
    execFileSync('tar', ['-xzf', archive, '-C', folder, `package/${KOFFI_FILE}`]);
    cpSync(join(folder, 'package', KOFFI_FILE), target);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function koffiArchive(folder: string, given: string | undefined): string {
  const { version, integrity } = lockedPackage(KOFFI);
  const pack = ['pack', '--silent', '--pack-destination', folder, `${KOFFI}@${version}`];
  const archive = given ?? join(folder, execFileSync('npm', pack, { cwd: folder, encoding: 'utf8' }).trim());
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (found !== integrity) throw new Error(`${archive} is not the package of package-lock.json: ${found}`);
  return archive;
}

function lockedPackage(name: string): { readonly version: string; readonly integrity: string } {
  const lock: {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>;
  } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const found = lock.packages[`node_modules/${name}`];
  if (found === undefined) throw new Error(`package-lock.json has no ${name}`);
  return found;
}

function packageVersion(): string {
  return (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
}

async function bundle(entryPoint: string, outfile: string, release: string): Promise<void> {
  await build({
    entryPoints: [join(ROOT, entryPoint)],
    outfile,
    define: { NODEKEEPER_AGENT_RELEASE: JSON.stringify(release) },
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // check-node.mjs, which runs first, contains the requirements. An older Node.js must be able to parse it up to
    // there.
    target: 'node18',
    inject: [join(ROOT, 'agent/bin/check-node.mjs')],
    minify: true,
    legalComments: 'none',
    // Only used to find a session bus through a display.
    external: ['x11'],
    plugins: [builtinsUnlinked, yamlInParts, withoutXml],
    logLevel: 'warning',
  });
  chmodSync(outfile, 0o755);
  const { size } = statSync(outfile);
  if (size > BYTES_MAX) throw new Error(`${outfile} has ${size} bytes, and may have ${BYTES_MAX}`);
}

const unitText = (): string => readFileSync(join(ROOT, 'agent/packaging/nodekeeper-agent.service'), 'utf8');

/** Variables of its systemd unit. */
export const agentVariables = (): Record<string, string> =>
  Object.fromEntries(
    [...unitText().matchAll(/^Environment=(.*)$/gm)]
      .flatMap(([, words = '']) => words.split(' '))
      .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  );

/** Node options of its systemd unit, before the bundle. */
export function agentNodeFlags(): string[] {
  const command = /^ExecStart=\/usr\/bin\/env node (.*)$/m.exec(unitText())?.[1] ?? '';
  return command.split(' ').filter((word) => word.startsWith('--') && word !== '--config');
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { platform: { type: 'string', default: 'linux' } } });
  const dist = join(ROOT, 'agent/dist');
  const builds: Readonly<Record<string, () => Promise<string>>> = {
    linux: () => buildAgent(dist),
    [WINDOWS]: () => buildWindowsAgent(join(dist, WINDOWS)),
  };
  const chosen = builds[values.platform];
  if (chosen === undefined) {
    console.error(`--platform has to be ${Object.keys(builds).join(' or ')}; found ${values.platform}`);
    process.exit(2);
  }
  const outfile = await chosen();
  console.log(`${outfile} ${Math.round(statSync(outfile).size / 1_024)} KiB`);
}
