import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { buildSync } from 'esbuild';
import { repositoryRoot } from './function-names.ts';

export interface BundleOptions {
  /** Texts to lie beside it, by name: what is too long for an environment, which holds 4 KB. */
  readonly files?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether what the handler imports on demand becomes a file of its own (`chunk-….mjs`), read when it is needed and not
   * at each cold start. @default false: one file
   */
  readonly splitsOnDemandImports?: boolean | undefined;
}

/**
 * A handler and all it imports, AWS SDK included, as one minified ES module `index.mjs` with a source map: what was
 * tested is what runs. esbuild is called in this process, tens of milliseconds a function; NodejsFunction would start
 * npx for each, and turn to Docker where it finds no esbuild.
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

/** Asked for by the type; never pulled, since local bundling either succeeds or throws. */
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
    // ES modules of the SDK shake; its CommonJS, which the condition `node` would pick, does not.
    conditions: ['module'],
    // Lambda's role credentials stand in the environment; the SDK's search for others is half of its client's size.
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
