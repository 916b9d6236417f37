/**
 * Writes shared/kinds/protobuf-messages.ts, and the messages of a Lease beside its kind.
 *
 * `npm run protobuf -- API APIMACHINERY`, with the folders of the repositories kubernetes/api and
 * kubernetes/apimachinery at the same release branch.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { protobufMessages } from './messages.ts';

const OUTPUT = 'shared/kinds/protobuf-messages.ts';
const LEASE_OUTPUT = 'shared/kinds/leases/protobuf-messages.ts';
const LEASE_MESSAGES = new Set([
  'coordination/v1.Lease',
  'coordination/v1.LeaseSpec',
  'meta/v1.ManagedFieldsEntry',
  'meta/v1.ObjectMeta',
  'meta/v1.OwnerReference',
]);

const [api, apimachinery] = process.argv.slice(2);
if (api === undefined || apimachinery === undefined) {
  console.error('usage: npm run protobuf -- API APIMACHINERY');
  process.exit(2);
}

const folders: Readonly<Record<string, string>> = { api, apimachinery };
const messages = protobufMessages((path) => {
  const [repository = '', ...rest] = path.split('/');
  return readFileSync(join(folders[repository] ?? '', ...rest), 'utf8');
});

const COLUMNS_MAX = 120;

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

const entriesOf = (ofLease: boolean): string =>
  [...messages]
    .filter(([name]) => LEASE_MESSAGES.has(name) === ofLease)
    .map(([name, fields]) => entryOf(name, fields))
    .join('\n');
writeFileSync(
  LEASE_OUTPUT,
  `/** The messages of a Lease: all that a heartbeat decodes. Written by scripts/protobuf/generate.ts, as the others. */
export const LEASE_MESSAGES = \`
${entriesOf(true)}
\`;
`,
);
writeFileSync(
  OUTPUT,
  `import { LEASE_MESSAGES } from './leases/protobuf-messages.ts';

/**
 * Field numbers, JSON names and types of the protobuf messages that clients send. Written by
 * scripts/protobuf/generate.ts from the struct tags of k8s.io/api and k8s.io/apimachinery, release 1.35.
 * protobuf-table.ts describes the format. Field numbers never change.
 */
export const PROTOBUF_MESSAGES = \`\${LEASE_MESSAGES}
${entriesOf(false)}
\`;
`,
);
console.log(`${OUTPUT}: ${messages.size} messages, ${[...messages.values()].flat().length} fields`);
