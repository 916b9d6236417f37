import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, sep } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import type { OutputFile } from 'esbuild';
import { type FunctionName, functionList } from '../../shared/function-list.ts';
import { handlerEntry, handlersFolder, prebuiltHandler, repositoryRoot } from './function-names.ts';

/** Files to add to the bundle, by name: for text beyond the 4 KB limit of the environment. */
export type AddedFiles = Readonly<Record<string, string>>;

/**
 * In these functions on-demand imports become files of their own (`chunk-….mjs`), read when needed instead of at each
 * cold start.
 */
const SPLIT: ReadonlySet<FunctionName> = new Set(['api']);

/**
 * A handler and all its imports, AWS SDK included, as one minified ES module `index.mjs` with a source map: the
 * deployed code is the tested code. esbuild runs once for most of them, in about a second. NodejsFunction
 * would start npx for each function, and use Docker where esbuild is not installed. The published package contains the
 * same bundles, and no esbuild.
 */
export function bundledHandler(functionName: FunctionName, files: AddedFiles = {}): Code {
  const prebuilt = prebuiltHandler(functionName);
  const isPrebuilt = existsSync(prebuilt);
  return Code.fromAsset(isPrebuilt ? prebuilt : dirname(handlerEntry(functionName)), {
    // The hash of the input would be that of handler.ts alone.
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      image: NO_IMAGE,
      local: {
        tryBundle: (outputFolder) => {
          if (isPrebuilt) cpSync(prebuilt, outputFolder, { recursive: true });
          else writeBundle(functionName, outputFolder);
          for (const [name, text] of Object.entries(files)) writeFileSync(join(outputFolder, name), text);
          return true;
        },
      },
    },
  });
}

/** Required by the type; never pulled, because local bundling either succeeds or throws. */
const NO_IMAGE = DockerImage.fromRegistry('local-bundling-only');

/**
 * Writes the bundle of a handler into a folder. The bytes depend on the sources only: a source map contains the paths
 * of the sources relative to the output folder, so esbuild works for the same one wherever the files are written.
 */
export function writeBundle(functionName: FunctionName, outputFolder: string): void {
  const outputFiles = SPLIT.has(functionName) ? build([functionName]) : commonBuild();
  const folder = prebuiltHandler(functionName) + sep;
  mkdirSync(outputFolder, { recursive: true });
  for (const { path, contents } of outputFiles) {
    if (path.startsWith(folder)) writeFileSync(join(outputFolder, basename(path)), contents);
  }
}

let common: readonly OutputFile[] | undefined;

/** All handlers without files of their own, in one run of esbuild, which then reads each source once. */
function commonBuild(): readonly OutputFile[] {
  common ??= build(functionList.map(({ name }) => name).filter((name) => !SPLIT.has(name)));
  return common;
}

function build(functionNames: readonly FunctionName[]): readonly OutputFile[] {
  // Loaded here: the published package does not need it.
  const { buildSync } = createRequire(import.meta.url)('esbuild') as typeof import('esbuild');
  const { outputFiles } = buildSync({
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
      '@aws-sdk/credential-provider-node': join(repositoryRoot, 'shared/adapters/dynamodb/no-credential-chain.ts'),
    },
    minify: true,
    sourcemap: true,
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'warning',
    // CommonJS dependencies inside an ES module bundle still call require for Node's own modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  });
  return outputFiles;
}
