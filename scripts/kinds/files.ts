/** The generated files, as text. */
import { typeTable as readTable } from '../../shared/kubernetes/type-table.ts';
import type { Wanted } from './roots.ts';
import { tsTypes } from './ts-types.ts';
import { type Entry, type ReadSource, typeTable } from './type-table.ts';

const FOLDER = 'shared/kinds/generated';
const COLUMNS_MAX = 120;

/** All that a heartbeat reads. It loads no other type. */
const LEASE = ['coordination/v1.Lease'];

/** Text by path, relative to the project. */
export function generatedFiles(read: ReadSource, { roots, typed, leftOut }: Wanted): ReadonlyMap<string, string> {
  const lease = typeTable(read, LEASE, {});
  const all = typeTable(read, roots, leftOut);
  const ofLease = new Set(lease.map(({ name }) => name));
  const others = all.filter(({ name }) => !ofLease.has(name));
  return new Map([
    [`${FOLDER}/version.ts`, versionText(releaseOf(read('api/go.mod')))],
    [
      `${FOLDER}/lease-table.ts`,
      `${WRITTEN_BY}
/** The types of a Lease. */
export const LEASE_TABLE = \`
${lease.map(lineOf).join('\n')}
\`;
`,
    ],
    [
      `${FOLDER}/type-table.ts`,
      `${WRITTEN_BY}
import { LEASE_TABLE } from './lease-table.ts';

/** Types of the kinds that are served. kubernetes/type-table.ts describes the form. */
export const TYPE_TABLE = \`\${LEASE_TABLE}
${others.map(lineOf).join('\n')}
\`;
`,
    ],
    ...typesOf(`\n${all.map(lineOf).join('\n')}\n`, { typed }),
  ]);
}

/** The one that is made of the tables alone. */
export const typesOf = (table: string, { typed }: Pick<Wanted, 'typed'>): ReadonlyMap<string, string> =>
  new Map([[`${FOLDER}/types.ts`, typesText(tsTypes(readTable(table), typed))]]);

/** Paths of files with another text on disk than the generated one. */
export const differingFiles = (
  files: ReadonlyMap<string, string>,
  readFile: (path: string) => string | undefined,
): string[] => [...files].filter(([path, text]) => readFile(path) !== text).map(([path]) => path);

const WRITTEN_BY = '// Written by `npm run kinds` from the sources of k8s.io/api and k8s.io/apimachinery.';

const typesText = (types: string): string => `${WRITTEN_BY}
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

/** A number, or a share such as \`50%\`. */
export type IntOrString = number | string;

${types}`;

const versionText = (release: string): string => `${WRITTEN_BY}

/** The served release of the Kubernetes API. Nodes report it as the version of their kubelet. */
export const KUBERNETES_VERSION = 'v1.${release}';
/** MINOR of the served version 1.MINOR. */
export const KUBERNETES_MINOR = '${release.split('.')[0]}';
`;

/**
 * `36.3` for sources of Kubernetes 1.36.3: k8s.io/api at v0.36.3 requires k8s.io/apimachinery at the same version.
 *
 * @throws Error for sources between releases
 */
function releaseOf(goMod: string): string {
  const release = /^\s*k8s\.io\/apimachinery v0\.(\d+\.\d+)$/m.exec(goMod)?.[1];
  if (release === undefined) throw new Error('api/go.mod names no release of k8s.io/apimachinery');
  return release;
}

/** One entry. Lines after the first are indented by one space. */
function lineOf({ name, head, fields }: Entry): string {
  const heads = head === '' ? [] : head.split(/(?<=\|)/);
  const parts = [...heads, ...fields];
  const lines: string[] = [];
  let line = `${name}:`;
  for (const [index, part] of parts.entries()) {
    const text = fields.length > 0 && index < parts.length - 1 ? `${part},` : part;
    if (line.length + text.length + 1 > COLUMNS_MAX) {
      lines.push(line);
      line = '';
    }
    line += line.endsWith('|') ? text : ` ${text}`;
  }
  return [...lines, line].join('\n');
}
