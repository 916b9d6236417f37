/** npm run agent:build: the agent and all its imports as one file, for machines that only have Node.js. */
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
  const outfile = await buildAgent(join(ROOT, 'agent/dist'));
  console.log(`${outfile} ${Math.round(statSync(outfile).size / 1_024)} KiB`);
}
