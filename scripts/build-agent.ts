/** npm run agent:build: the agent and all it imports as one file for machines that have Node and nothing else. */
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** What a slow link carries in a minute. Bytes. */
const BYTES_MAX = 2 * 1024 * 1024;

/**
 * An import statement makes Node evaluate every export of a module of its own, and that of node:http brings fetch and
 * WebSocket along: 5 MB of memory for what nobody calls. Asked for as an object, it loads what is used.
 */
const builtinsUnlinked: Plugin = {
  name: 'builtins-unlinked',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /.*/ }, ({ path }) => (isBuiltin(path) ? { path, namespace: 'builtin' } : undefined));
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

/** The same library as modules, of which what nobody calls is left out; for Node it offers itself whole. */
const yamlInParts: Plugin = {
  name: 'yaml-in-parts',
  setup({ onResolve }) {
    const path = join(ROOT, 'node_modules/yaml/browser/dist/index.js');
    onResolve({ filter: /^yaml$/ }, () => ({ path }));
  },
};

/** The D-Bus library reads XML to find out what an object can do; we know, and never ask. */
const withoutXml: Plugin = {
  name: 'without-xml',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^xml2js$/ }, ({ path }) => ({ path, namespace: 'unused' }));
    onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
      contents: 'class Unused {} module.exports = { Builder: Unused, Parser: Unused };',
    }));
  },
};

/** Returns the path of the bundle. @throws Error when it is larger than it may be. */
export async function buildAgent(directory: string): Promise<string> {
  mkdirSync(directory, { recursive: true });
  const outfile = join(directory, 'nodekeeper-agent.mjs');
  await build({
    entryPoints: [join(ROOT, 'agent/bin/nodekeeper-agent.ts')],
    outfile,
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // What it needs is in check-node.mjs, which comes first; an older Node.js has to be able to read as far as that.
    target: 'node18',
    inject: [join(ROOT, 'agent/bin/check-node.mjs')],
    minify: true,
    legalComments: 'none',
    // Asked for only to find a session bus through a display.
    external: ['x11'],
    plugins: [builtinsUnlinked, yamlInParts, withoutXml],
    logLevel: 'warning',
  });
  chmodSync(outfile, 0o755);
  const { size } = statSync(outfile);
  if (size > BYTES_MAX) throw new Error(`${outfile} has ${size} bytes, and may have ${BYTES_MAX}`);
  for (const file of ['nodekeeper-agent.service', 'install.sh']) {
    cpSync(join(ROOT, 'agent/packaging', file), join(directory, file));
  }
  return outfile;
}

/** What its systemd unit gives Node before the bundle. */
export function agentNodeFlags(): string[] {
  const unit = readFileSync(join(ROOT, 'agent/packaging/nodekeeper-agent.service'), 'utf8');
  const command = /^ExecStart=\/usr\/bin\/env node (.*)$/m.exec(unit)?.[1] ?? '';
  return command.split(' ').filter((word) => word.startsWith('--') && word !== '--config');
}

if (import.meta.main) {
  const outfile = await buildAgent(join(ROOT, 'agent/dist'));
  console.log(`${outfile} ${Math.round(statSync(outfile).size / 1_024)} KiB`);
}
