import { expect, it } from 'vitest';
import { serviceAccountGroups, serviceAccountIn, serviceAccountUser } from './account-name.ts';

it('a service account is found in the user name that it signs in with, and has the groups of its namespace', () => {
  for (const account of [
    { namespace: 'a', name: 'b' },
    { namespace: '9-x', name: 'build.bot-7' },
    { namespace: 'n'.repeat(63), name: 'x'.repeat(253) },
  ]) {
    expect(serviceAccountIn(serviceAccountUser(account.namespace, account.name))).toEqual(account);
  }
  expect(serviceAccountUser('a', 'b')).toBe('system:serviceaccount:a:b');
  expect(serviceAccountGroups('a')).toEqual(['system:serviceaccounts', 'system:serviceaccounts:a']);
});

it.each([
  'a:b',
  'system:node:a:b',
  'x-system:serviceaccount:a:b',
  'system:serviceaccount:a',
  'system:serviceaccount::b',
  'system:serviceaccount:a:',
  'system:serviceaccount:a:b:c',
  'system:serviceaccount:-a:b',
  'system:serviceaccount:a-:b',
  'system:serviceaccount:A:b',
  'system:serviceaccount:a.b:c',
  'system:serviceaccount:a:B',
  'system:serviceaccount:a:-b',
  `system:serviceaccount:${'n'.repeat(64)}:b`,
])('no service account has the user name %s', (username) => {
  expect(serviceAccountIn(username)).toBeUndefined();
});
