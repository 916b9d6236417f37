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
    ['a user of the role’s name', 'arn:aws:iam::123456789012:user/Ops'],
  ])('is not authenticated by %s', (_, arn) => {
    expect(mapIdentity(session, [{ arn, groups: ['a'] }])).toBeUndefined();
  });
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
  ])('reports the fault of %s', (field, entry) => {
    expect(accessEntryFaults(entry).map((fault) => fault.field)).toEqual([field]);
  });

  it('finds nothing wrong with a good one', () => {
    expect(accessEntryFaults(good)).toEqual([]);
  });
});
