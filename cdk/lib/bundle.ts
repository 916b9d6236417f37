import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import type { FunctionName } from '../../functions/function-list.ts';
import { handlerEntry, prebuiltHandler } from './function-names.ts';
import { handlerBundles } from './handler-bundles.ts';

/** Files to add to the bundle, by name: for text beyond the 4 KB limit of the environment. */
export type AddedFiles = Readonly<Record<string, string>>;

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
  const outputFiles = handlerBundles(functionName);
  const folder = prebuiltHandler(functionName) + sep;
  mkdirSync(outputFolder, { recursive: true });
  for (const { path, contents } of outputFiles) {
    if (path.startsWith(folder)) writeFileSync(join(outputFolder, basename(path)), contents);
  }
}
