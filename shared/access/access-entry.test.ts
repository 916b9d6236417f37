import { describe, expect, it } from 'vitest';
import { accessEntryFaults, canonicalArn, mapIdentity } from './access-entry.ts';

const session = {
  arn: 'arn:aws:sts::123456789012:assumed-role/Ops/ada@example',
  accountId: '123456789012',
  userId: 'AROA:ada@example',
};

describe('canonicalArn', () => {
  it.each([
    ['arn:aws:sts::123456789012:assumed-role/Ops/ada', 'arn:aws:iam::123456789012:role/Ops'],
    ['arn:aws:iam::123456789012:role/team/a/Ops', 'arn:aws:iam::123456789012:role/Ops'],
    ['arn:aws:iam::123456789012:user/people/ada', 'arn:aws:iam::123456789012:user/ada'],
    ['arn:aws-cn:iam::123456789012:user/ada', 'arn:aws-cn:iam::123456789012:user/ada'],
    ['arn:aws:iam::123456789012:root', undefined],
    ['arn:aws:sts::123456789012:federated-user/ada', undefined],
    [
      'arn:aws-us-gov:sts::123456789012:assumed-role/Ops+a=b,c.d@e-f_g/x1',
      'arn:aws-us-gov:iam::123456789012:role/Ops+a=b,c.d@e-f_g',
    ],
    [
      `arn:aws:sts::123456789012:assumed-role/${'r'.repeat(64)}/${'s'.repeat(64)}`,
      `arn:aws:iam::123456789012:role/${'r'.repeat(64)}`,
    ],
    [`arn:aws:sts::123456789012:assumed-role/${'r'.repeat(65)}/ada`, undefined],
    [`arn:aws:sts::123456789012:assumed-role/Ops/${'s'.repeat(65)}`, undefined],
    ['arn:aws:sts::123456789012:assumed-role/Ops/a', undefined],
    ['arn:aws:sts::123456789012:assumed-role//ada', undefined],
    ['arn:aws:sts::123456789012:assumed-role/O ps/ada', undefined],
    ['arn:aws:sts::123456789012:assumed-role/Ops/a da', undefined],
    ['arn:aws:sts::12345678901:assumed-role/Ops/ada', undefined],
    ['arn:aws:sts::1234567890123:assumed-role/Ops/ada', undefined],
    ['arn:aws:sts::12345678901x:assumed-role/Ops/ada', undefined],
    ['arn:other:sts::123456789012:assumed-role/Ops/ada', undefined],
    ['x arn:aws:sts::123456789012:assumed-role/Ops/ada', undefined],
    ['arn:aws:sts::123456789012:assumed-role/Ops/ada/x', undefined],
    [`arn:aws:iam::123456789012:user/${'u'.repeat(64)}`, `arn:aws:iam::123456789012:user/${'u'.repeat(64)}`],
    [`arn:aws:iam::123456789012:user/${'u'.repeat(65)}`, undefined],
    ['arn:aws:iam::123456789012:user/', undefined],
    ['arn:aws:iam::123456789012:user/a b', undefined],
    ['arn:aws:iam::123456789012:user/a b/ada', undefined],
    ['arn:aws:iam::123456789012:group/ada', undefined],
    ['arn:aws:iam::12345678901:user/ada', undefined],
    ['arn:aws:iam::1234567890123:user/ada', undefined],
    ['arn:aws:iam::12345678901x:user/ada', undefined],
    ['x arn:aws:iam::123456789012:user/ada', undefined],
    ['arn:aws:iam::123456789012:user/ada ', undefined],
  ])('of %s is %s', (arn, canonical) => {
    expect(canonicalArn(arn)).toBe(canonical);
  });
});

describe('mapIdentity', () => {
  it('knows a session by its role, and fills in who it is', () => {
    const entry = {
      arn: 'arn:aws:iam::123456789012:role/team/Ops',
      username: 'ops:{{SessionName}}@{{AccountID}}',
      groups: ['nodekeeper:admins'],
    };
    expect(mapIdentity(session, [entry])).toEqual({
      username: 'ops:ada@example@123456789012',
      groups: ['nodekeeper:admins'],
    });
  });

  it('names a user by the ARN if the entry has no name, and uses the first of several entries', () => {
    const arn = 'arn:aws:iam::123456789012:role/Ops';
    expect(
      mapIdentity(session, [
        { arn, groups: ['a'] },
        { arn, groups: ['b'] },
      ]),
    ).toEqual({
      username: session.arn,
      groups: ['a'],
    });
  });

  it.each([
    ['the same name in another account', 'arn:aws:iam::999999999999:role/Ops'],
    ['the same name in another partition', 'arn:aws-cn:iam::123456789012:role/Ops'],
    ['no role or user', 'arn:aws:iam::123456789012:root'],
    ['a user of the role’s name', 'arn:aws:iam::123456789012:user/Ops'],
  ])('is not authenticated by %s', (_, arn) => {
    expect(mapIdentity(session, [{ arn, groups: ['a'] }])).toBeUndefined();
  });
});

it('a caller without an ARN of a role or user is not authenticated, whatever the entries are', () => {
  const root = { ...session, arn: 'arn:aws:iam::123456789012:root' };
  expect(mapIdentity(root, [{ arn: root.arn, groups: ['a'] }])).toBeUndefined();
});

it('a user has no session, so its name in a template is empty, as is that of what is not known', () => {
  const arn = 'arn:aws:iam::123456789012:user/ada';
  const entry = { arn, username: 'x-{{SessionName}}-{{AccountID}}-{{Other}}', groups: ['a'] };
  expect(mapIdentity({ arn, accountId: '7', userId: 'AIDA' }, [entry])).toEqual({ username: 'x--7-', groups: ['a'] });
});

describe('accessEntryFaults', () => {
  const good = { arn: 'arn:aws:iam::123456789012:role/Ops', groups: ['nodekeeper:viewers'] };
  it.each([
    ['arn', { ...good, arn: 'arn:aws:iam::1234:role/Ops' }],
    ['arn', { ...good, arn: 'arn:aws:sts::123456789012:assumed-role/Ops/ada' }],
    ['username', { ...good, username: 'system:admin' }],
    ['username', { ...good, username: '' }],
    ['username', { ...good, username: '{{Password}}' }],
    ['groups', { ...good, groups: [] }],
    ['groups', { ...good, groups: ['system:nodes'] }],
    ['groups', { ...good, groups: ['nodekeeper:probes'] }],
    ['groups', { ...good, groups: ['system:bootstrappers'] }],
    ['groups', { ...good, groups: ['nodekeeper:simulated-fleet'] }],
    ['groups', { ...good, groups: ['a', ''] }],
    ['groups', { ...good, groups: Array.from({ length: 11 }, (_, index) => `g${index}`) }],
    ['username', { ...good, username: '{{SessionName}}-{{Password}}' }],
  ])('reports the fault of %s', (field, entry) => {
    expect(accessEntryFaults(entry).map((fault) => fault.field)).toEqual([field]);
  });

  it('finds nothing wrong with a good one', () => {
    expect(accessEntryFaults(good)).toEqual([]);
    const groups = Array.from({ length: 10 }, (_, index) => `g${index}`);
    const username = 'ops:system:{{SessionName}}@{{AccountID}}';
    expect(accessEntryFaults({ ...good, groups, username })).toEqual([]);
  });
});
