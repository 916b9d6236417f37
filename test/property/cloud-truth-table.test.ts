/**
 * docs/cloud-truth-table.md is generated from the rule. After a change of the rule:
 *   WRITE_DOCS=1 npx vitest run test/property/cloud-truth-table.test.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { cloudTable, renderCloudTable } from '../support/cloud-node-table.ts';

const page = new URL('../../docs/cloud-truth-table.md', import.meta.url);

const text = `# What follows from an answer of EC2

Find the row with the node's Ready condition, the answer of EC2 and the shutdown taint. The last two columns are what
cloud-node does at the first answer, and at the same answer one period later.

- True, False and Unknown are the status of Ready. A node without a Ready condition counts as Unknown.
- _Young_ is an instance of at most ${defaultPolicy.cloudYoungInstanceSeconds} s, since its launch if EC2 ever reported that,
  else since the creation of its Node.

The table has every combination; those with the same outcome are one row. A test generates it from the rule
(\`shared/fleet/instances/rule.ts\`) with the default policy.

${renderCloudTable(defaultPolicy)}`;

describe('docs/cloud-truth-table.md', () => {
  it('equals the rule', () => {
    if (process.env['WRITE_DOCS'] === '1') writeFileSync(page, text);
    expect(readFileSync(page, 'utf8')).toBe(text);
  });

  it('covers every readiness and every answer', () => {
    const rows = cloudTable(defaultPolicy);
    const answers = new Set(rows.map(({ answer }) => answer));
    expect(rows).toHaveLength(3 * answers.size * 2);
    for (const word of ['running', 'stopping', 'stopped', 'shutting-down', 'terminated', 'young', 'old', 'error']) {
      expect([...answers].join()).toContain(word);
    }
    for (const word of ['throttled', 'timeout', 'foreign']) expect([...answers].join()).toContain(word);
  });

  it('deletes in exactly these rows', () => {
    const deleting = cloudTable(defaultPolicy).flatMap(({ ready, answer, first, second }) =>
      first.kind === 'delete' || second.kind === 'delete' ? [`${ready} ${answer} ${first.kind} ${second.kind}`] : [],
    );
    expect([...new Set(deleting)]).toEqual([
      'False shutting-down delete delete',
      'False terminated delete delete',
      'False vanished, old wait delete',
      'Unknown shutting-down delete delete',
      'Unknown terminated delete delete',
      'Unknown vanished, old wait delete',
    ]);
  });
});
