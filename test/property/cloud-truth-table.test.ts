/**
 * docs/cloud-truth-table.md is what the rule says, word for word. After a change of the rule:
 *   UPDATE_DOCS=1 npx vitest run test/property/cloud-truth-table.test.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/domain/policy.ts';
import { cloudTable, renderCloudTable } from '../support/cloud-node-table.ts';

const page = new URL('../../docs/cloud-truth-table.md', import.meta.url);

const text = `# What follows from EC2's word

Every combination of a node's readiness, EC2's answer and the shutdown taint, with what is done at the first answer and at the
same answer a period later. Written from the rule itself (\`shared/controllers/cloud-node/rule.ts\`) with the default policy; a test holds
the two together. NotReady is Ready=False; a node without a Ready condition counts as Unknown. _Young_ is an instance of at most
${defaultPolicy.cloudYoungInstanceSeconds} s, by its launch where EC2 ever told it, else by the creation of its Node.

${renderCloudTable(defaultPolicy)}`;

describe('docs/cloud-truth-table.md', () => {
  it('says what the rule does', () => {
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(page, text);
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
