/** The generated files, as text. */
import { protobufMessages, type ReadSource } from './messages.ts';
import type { Roots } from './roots.ts';

const FOLDER = 'shared/kinds/generated';
const COLUMNS_MAX = 120;

/** All that a heartbeat decodes. It loads no other message. */
const LEASE_MESSAGES = new Set([
  'coordination/v1.Lease',
  'coordination/v1.LeaseSpec',
  'meta/v1.ManagedFieldsEntry',
  'meta/v1.ObjectMeta',
  'meta/v1.OwnerReference',
]);

/** Text by path, relative to the project. */
export function generatedFiles(read: ReadSource, roots: Roots): ReadonlyMap<string, string> {
  const messages = protobufMessages(read, roots);
  const entriesOf = (ofLease: boolean): string =>
    [...messages]
      .filter(([name]) => LEASE_MESSAGES.has(name) === ofLease)
      .map(([name, fields]) => entryOf(name, fields))
      .join('\n');
  return new Map([
    [`${FOLDER}/version.ts`, versionText(releaseOf(read('api/go.mod')))],
    [
      `${FOLDER}/lease-messages.ts`,
      `${WRITTEN_BY}
/** The messages of a Lease: all that a heartbeat decodes. */
export const LEASE_MESSAGES = \`
${entriesOf(true)}
\`;
`,
    ],
    [
      `${FOLDER}/protobuf-messages.ts`,
      `${WRITTEN_BY}
import { LEASE_MESSAGES } from './lease-messages.ts';

/** Messages that clients send: field numbers, JSON names and types. wire/protobuf-table.ts describes the format. */
export const PROTOBUF_MESSAGES = \`\${LEASE_MESSAGES}
${entriesOf(false)}
\`;
`,
    ],
  ]);
}

/** Paths of files with another text on disk than the generated one. */
export const differingFiles = (
  files: ReadonlyMap<string, string>,
  readFile: (path: string) => string | undefined,
): string[] => [...files].filter(([path, text]) => readFile(path) !== text).map(([path]) => path);

const WRITTEN_BY = '// Written by `npm run kinds` from the sources of k8s.io/api and k8s.io/apimachinery.';

const versionText = (release: string): string => `${WRITTEN_BY}

/** The served release of the Kubernetes API. Nodes report it as the version of their kubelet. */
export const KUBERNETES_VERSION = 'v1.${release}';
/** Of the served version 1.MINOR. */
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

/** One message. Lines after the first are indented by one space. */
function entryOf(name: string, fields: readonly string[]): string {
  const lines: string[] = [];
  let line = `${name}:`;
  for (const [index, field] of fields.entries()) {
    const word = index === fields.length - 1 ? field : `${field},`;
    if (line.length + word.length + 1 > COLUMNS_MAX) {
      lines.push(line);
      line = '';
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
}
