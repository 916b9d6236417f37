import { describe, expect, it } from 'vitest';
import { accessEntriesFromJson, describeAccessEntriesFault, parseAccessEntries } from './access-entries.ts';
import { accessEntriesFromYaml } from './access-entries-file.ts';

const ROLE = 'arn:aws:iam::123456789012:role/Ops';
const told = (parsed: ReturnType<typeof parseAccessEntries>): string[] =>
  parsed.kind === 'ok' ? [] : parsed.faults.map(describeAccessEntriesFault);

describe('access entries', () => {
  it('are read from a list', () => {
    const entries = [{ arn: ROLE, username: 'ops', groups: ['nodekeeper:admins'] }];
    expect(parseAccessEntries(entries)).toEqual({ kind: 'ok', entries });
    expect(parseAccessEntries([])).toEqual({ kind: 'ok', entries: [] });
  });

  it.each([
    ['accessEntries must be a list of {arn, username, groups}', {}],
    ['accessEntries[0].arn must be text: the ARN of an IAM role or user', [{ groups: ['a'] }]],
    ['accessEntries[0].groups must be a list of group names', [{ arn: ROLE, groups: 'admins' }]],
    ['accessEntries[0].group is no field of an access entry', [{ arn: ROLE, groups: ['a'], group: 'b' }]],
    [
      "accessEntries[1].arn is entry 0's too",
      [
        { arn: ROLE, groups: ['a'] },
        { arn: ROLE, groups: ['b'] },
      ],
    ],
    ['accessEntries[0].groups must not hold "system:nodes"', [{ arn: ROLE, groups: ['system:nodes'] }]],
  ])('are refused: %s', (fault, input) => {
    expect(told(parseAccessEntries(input))).toEqual([fault]);
  });

  it('are accepted in any number that a cold start can read', () => {
    const roles = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ arn: `${ROLE}${index}`, groups: ['nodekeeper:viewers'] }));
    expect(accessEntriesFromJson(JSON.stringify(roles(10_000)))).toHaveLength(10_000);
    expect(told(parseAccessEntries(roles(10_001)))[0]).toMatch(/are 10001, of 10000 at most/);
  });

  it('are checked again by the function that reads them', () => {
    expect(() => accessEntriesFromJson('[')).toThrow('ACCESS_ENTRIES_FILE must contain JSON');
    expect(() => accessEntriesFromJson('[{"arn": 1}]')).toThrow(
      'ACCESS_ENTRIES_FILE accessEntries[0].arn must be text: the ARN of an IAM role or user',
    );
  });

  it('are reported with file and line', () => {
    const text = `- arn: ${ROLE}\n  groups: [nodekeeper:admins]\n- arn: no-arn\n  groups: []\n`;
    expect(told(accessEntriesFromYaml(text, 'access.yaml'))).toEqual([
      'access.yaml:3 accessEntries[1].arn must be the ARN of an IAM role or user: arn:aws:iam::123456789012:role/NAME',
      'access.yaml:4 accessEntries[1].groups must name 1 to 10 groups',
    ]);
    expect(told(accessEntriesFromYaml('- arn: [', 'access.yaml'))[0]).toMatch(/^access\.yaml:1 /);
    expect(accessEntriesFromYaml('', 'access.yaml')).toEqual({ kind: 'ok', entries: [] });
  });
});
