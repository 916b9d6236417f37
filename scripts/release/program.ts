/**
 * The npm package `nodekeeper`: the commands, `serve` among them, as JavaScript without dependencies. Parts that a
 * command does not need are files of their own, loaded on demand.
 */
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { bundlePage } from '../../console/server/page-files.ts';
import { buildAgent } from '../build-agent.ts';
import { type Manifest, ROOT, writeManifest } from './manifest.ts';

/**
 * Source, a path that it names, and the path in the package: there all programs are in one folder, and the cache of
 * compiled code is beside it.
 */
const NAMES: readonly (readonly [source: string, named: string, packaged: string])[] = [
  ['cli/kubeconfig-command.ts', './bin/nodekeeper.mjs', './nodekeeper.mjs'],
  ['cli/bin/nodekeeper.mjs', './nodekeeper.ts', './commands.mjs'],
  ['server/bin/start.mjs', '../../node_modules/.cache/nodekeeper', '../.cache'],
  ['server/store/file-worker.ts', './file-thread.ts', './file-thread.mjs'],
  ['console/server/page-files.ts', '../page/', './page/'],
  ['demo/machines/machine.ts', '../../agent/bin/nodekeeper-agent.ts', './nodekeeper-agent.mjs'],
];

/** Entry points, by their name in the package. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  nodekeeper: 'cli/bin/nodekeeper.mjs',
  commands: 'cli/bin/nodekeeper.ts',
  start: 'server/bin/start.mjs',
  'file-thread': 'server/store/file-thread.ts',
};
/** Native accelerators of `ws`, which are optional; and the bundler, for the console of a clone. */
const EXTERNAL = ['bufferutil', 'utf-8-validate', 'esbuild'];

/** @throws Error when a source does not name its path */
const namesOfThePackage: Plugin = {
  name: 'names-of-the-package',
  setup({ onLoad }) {
    for (const [source, named, packaged] of NAMES) {
      const path = join(ROOT, source);
      const text = readFileSync(path, 'utf8');
      if (!text.includes(`'${named}'`)) throw new Error(`${source} does not name '${named}'`);
      const contents = text.replace(`'${named}'`, `'${packaged}'`);
      onLoad({ filter: new RegExp(`/${source.replaceAll('.', '[.]')}$`) }, () => ({
        contents,
        loader: source.endsWith('.ts') ? 'ts' : 'js',
      }));
    }
  },
};

/** Builds it in a directory, which is emptied first. */
export async function buildProgram(directory: string, manifest: Manifest): Promise<void> {
  rmSync(directory, { recursive: true, force: true });
  const bin = join(directory, 'bin');
  mkdirSync(bin, { recursive: true });
  await build({
    entryPoints: Object.fromEntries(Object.entries(PROGRAMS).map(([name, source]) => [name, join(ROOT, source)])),
    outdir: bin,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'part-[hash]',
    splitting: true,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22.18',
    mainFields: ['module', 'main'],
    conditions: ['module'],
    absWorkingDir: ROOT,
    tsconfig: join(ROOT, 'tsconfig.json'),
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    external: EXTERNAL,
    plugins: [namesOfThePackage],
    // CommonJS dependencies inside an ES module still call require for modules of Node.js.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  });
  await buildAgent(bin, manifest.version);
  for (const name of readdirSync(bin)) if (!name.endsWith('.mjs')) rmSync(join(bin, name));
  for (const name of ['nodekeeper.mjs', 'start.mjs']) chmodSync(join(bin, name), 0o755);
  const page = join(bin, 'page');
  mkdirSync(page);
  for (const name of ['index.html', 'console.css']) cpSync(join(ROOT, 'console/page', name), join(page, name));
  writeFileSync(join(page, 'console.js'), await bundlePage());
  writeManifest(directory, manifest, {
    name: 'nodekeeper',
    description: 'The Kubernetes node controller without a control plane to run',
    bin: { nodekeeper: 'bin/nodekeeper.mjs' },
    files: ['bin'],
    keywords: ['kubernetes', 'edge', 'node-controller'],
  });
}
