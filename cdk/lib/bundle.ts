import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { buildSync } from 'esbuild';
import { repositoryRoot } from './function-names.ts';

export interface BundleOptions {
  /** Files to add to the bundle, by name: for text beyond the 4 KB limit of the environment. */
  readonly files?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether on-demand imports of the handler become files of their own (`chunk-….mjs`), read when needed instead of at
   * each cold start. @default false: one file
   */
  readonly splitsOnDemandImports?: boolean | undefined;
}

/**
 * A handler and all its imports, AWS SDK included, as one minified ES module `index.mjs` with a source map: the
 * deployed code is the tested code. esbuild runs in this process, tens of milliseconds per function. NodejsFunction
 * would start npx for each function, and use Docker where esbuild is not installed.
 *
 * @param entry absolute path of a handler.ts that exports `handler`
 */
export function bundledHandler(entry: string, { files = {}, splitsOnDemandImports = false }: BundleOptions = {}): Code {
  return Code.fromAsset(dirname(entry), {
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      image: NO_IMAGE,
      local: {
        tryBundle: (outputFolder) => {
          bundle(entry, outputFolder, splitsOnDemandImports);
          for (const [name, text] of Object.entries(files)) writeFileSync(join(outputFolder, name), text);
          return true;
        },
      },
    },
  });
}

/** Required by the type; never pulled, because local bundling either succeeds or throws. */
const NO_IMAGE = DockerImage.fromRegistry('local-bundling-only');

function bundle(entry: string, outputFolder: string, splitting: boolean): void {
  buildSync({
    entryPoints: [entry],
    outdir: outputFolder,
    entryNames: 'index',
    chunkNames: 'chunk-[hash]',
    outExtension: { '.js': '.mjs' },
    splitting,
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
}
