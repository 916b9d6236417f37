/**
 * The bundles of the handlers, by esbuild. The program of the CDK begins them before it loads the CDK: both need
 * seconds, and esbuild runs in a process of its own. Everything else builds them when it needs them.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { BuildOptions } from 'esbuild';
import { type FunctionName, functionList } from '../../functions/function-list.ts';
import { handlerEntry, handlersFolder, repositoryRoot } from './function-names.ts';
import { type BundleFile, keepBundles, keptBundles } from './kept-bundles.ts';

/**
 * In these functions on-demand imports become files of their own (`chunk-….mjs`), read when needed instead of at each
 * cold start.
 */
const SPLIT: ReadonlySet<FunctionName> = new Set(['api', 'cloud-node', 'heartbeat', 'pod-gc', 'watch', 'workloads']);

type Esbuild = typeof import('esbuild');

/** Loaded when it is needed: the published package does not have it. */
const esbuild = (): Esbuild => createRequire(import.meta.url)('esbuild') as Esbuild;

/** Function names, and the files of their bundles: one run of esbuild reads each source once. */
const built = new Map<string, readonly BundleFile[]>();

const runs = (): readonly (readonly FunctionName[])[] => {
  const names = functionList.map(({ name }) => name);
  return [...names.filter((name) => SPLIT.has(name)).map((name) => [name]), names.filter((name) => !SPLIT.has(name))];
};

/** Builds all handlers, without blocking. */
export async function buildHandlersAhead(): Promise<void> {
  const missing = runs().filter((names) => kept(names) === undefined);
  if (missing.length === 0) return;
  const { build } = esbuild();
  await Promise.all(missing.map(async (names) => keep(names, (await build(optionsOf(names))).outputFiles)));
}

/** Files of the bundle of a handler, and maybe of others. */
export function handlerBundles(functionName: FunctionName): readonly BundleFile[] {
  const names = runs().find((each) => each.includes(functionName)) ?? [functionName];
  return kept(names) ?? keep(names, esbuild().buildSync(optionsOf(names)).outputFiles);
}

function kept(names: readonly FunctionName[]): readonly BundleFile[] | undefined {
  const known = built.get(names.join()) ?? keptBundles(names.join());
  if (known !== undefined) built.set(names.join(), known);
  return known;
}

function keep(names: readonly FunctionName[], files: readonly BundleFile[]): readonly BundleFile[] {
  built.set(names.join(), files);
  keepBundles(names.join(), files);
  return files;
}

/**
 * An import statement makes Node.js evaluate every export of a built-in module. That of node:http loads fetch and
 * WebSocket: 15 ms of CPU and 2 MB of memory at each cold start, for unused code. Loaded as an object, only the used
 * parts are evaluated. The agent does it by a plugin (scripts/build-agent.ts), which buildSync does not accept.
 */
const builtinAliases = (): Record<string, string> =>
  Object.fromEntries(
    ['http', 'https'].flatMap((name) => {
      const file = join(repositoryRoot, `cdk/lib/builtins/${name}.cjs`);
      return [
        [name, file],
        [`node:${name}`, file],
      ];
    }),
  );

function optionsOf(functionNames: readonly FunctionName[]): BuildOptions & { readonly write: false } {
  return {
    entryPoints: Object.fromEntries(functionNames.map((name) => [`${name}/index`, handlerEntry(name)])),
    write: false,
    outdir: handlersFolder,
    chunkNames: `${functionNames[0]}/chunk-[hash]`,
    outExtension: { '.js': '.mjs' },
    splitting: functionNames.some((name) => SPLIT.has(name)),
    absWorkingDir: repositoryRoot,
    tsconfig: join(repositoryRoot, 'tsconfig.json'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    mainFields: ['module', 'main'],
    // esbuild can remove unused code of the SDK's ES modules, but not of its CommonJS, which `node` would select.
    conditions: ['module'],
    // Lambda puts the role's credentials into the environment. The SDK's credential chain is half of its client's size.
    alias: {
      '@aws-sdk/credential-provider-node': join(repositoryRoot, 'shared/aws/no-credential-chain.ts'),
      ...builtinAliases(),
    },
    minify: true,
    sourcemap: true,
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'warning',
    // CommonJS dependencies inside an ES module bundle still call require for Node's own modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  };
}
