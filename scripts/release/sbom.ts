/**
 * The parts of an artefact that others wrote, as CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json): the packages of
 * npm that the bundler read, and Node.js where it is beside them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { FILE_SECONDS } from './archive.ts';
import { ROOT } from './manifest.ts';

interface LockedPackage {
  readonly version: string;
  readonly integrity?: string;
  readonly license?: string;
}

/** Folders of packages, such as node_modules/zod, that these entry points import, on demand ones included. */
export async function bundledPackages(entryPoints: readonly string[]): Promise<readonly string[]> {
  const { metafile } = await build({
    entryPoints: Object.fromEntries(entryPoints.map((entry, index) => [`entry-${index}`, join(ROOT, entry)])),
    absWorkingDir: ROOT,
    tsconfig: join(ROOT, 'tsconfig.json'),
    bundle: true,
    write: false,
    outdir: ROOT,
    metafile: true,
    platform: 'node',
    format: 'esm',
    mainFields: ['module', 'main'],
    external: ['bufferutil', 'utf-8-validate', 'esbuild', 'x11', 'xml2js', 'aws-cdk-lib', 'constructs'],
    logLevel: 'error',
  });
  const folders = Object.keys(metafile.inputs).flatMap((path) => PACKAGE_FOLDER.exec(path)?.[0] ?? []);
  return [...new Set(folders)].toSorted();
}

/** The innermost package of a path. */
const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/(?!.*node_modules\/))/;

export interface Artefact {
  readonly name: string;
  readonly version: string;
  readonly packages: readonly string[];
  /** Version of the Node.js in it. Absent: none is. */
  readonly node?: string;
}

/** @throws Error for a package that package-lock.json does not have */
export function softwareBill({ name, version, packages, node }: Artefact): object {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  const components = packages.map((folder) => {
    const locked = lock.packages[folder];
    if (locked === undefined) throw new Error(`package-lock.json has no ${folder}`);
    return componentOf(folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length), locked);
  });
  const runtime =
    node === undefined ? [] : [{ type: 'application', name: 'node', version: node, purl: `pkg:generic/node@${node}` }];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(FILE_SECONDS * 1_000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': 'artefact',
        name,
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components: [...components, ...runtime],
  };
}

function componentOf(name: string, { version, integrity, license }: LockedPackage): object {
  const [algorithm, digest = ''] = (integrity ?? '').split('-', 2);
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(license === undefined
      ? {}
      : { licenses: [license.includes(' ') ? { expression: license } : { license: { id: license } }] }),
    ...(algorithm === 'sha512'
      ? { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }
      : {}),
  };
}
